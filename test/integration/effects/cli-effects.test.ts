import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type TestDatabase } from '../../support/database.ts'
import { CliProject } from '../cli-project.ts'

let project: CliProject

beforeAll(() => {
  project = new CliProject()
}, 120_000)
afterAll(async () => await project[Symbol.asyncDispose]())

/** A job that was discarded because of an effect in doubt, as its worker would have left it. */
async function withDoubt(): Promise<{ readonly db: TestDatabase; readonly id: string }> {
  const db = await createDatabase()
  await db.sql(
    `insert into holdfast.job_definition (name, queue, priority, max_attempts) values ('mail', 'default', 0, 3)`,
  )
  const [row] = await db.sql<{ id: string }>(`select id::text from holdfast.enqueue('mail')`)
  const id = row?.id as string
  await db.sql('delete from holdfast.ready')
  await db.sql(
    `insert into holdfast.outcome (job_id, token, finished_at, attempts, state, reason) values ($1, 1, now(), 1, 'discarded', 'effect-uncertain')`,
    [id],
  )
  await db.sql(
    `insert into holdfast.effect (tenant, name, key, state, call, calls, job_id, token, error)
     values ('', 'send:email', $1, 'uncertain', gen_random_uuid(), 1, $2, 1, '{"message":"timeout \\u001b[2J"}')`,
    [`order 42`, id],
  )
  await db.sql(
    `insert into holdfast.effect_question (job_id, tenant, name, key) values ($1, '', 'send:email', 'order 42')`,
    [id],
  )
  await db.sql(
    `insert into holdfast.checkpoint (job_id, token, value, progress_at, fraction, note) values ($1, 1, '{"at": 1.10}', now(), 0.5, 'half')`,
    [id],
  )
  return { db, id }
}

describe('holdfast effects', () => {
  it('lists what waits for a decision, shows it, and refuses a plain retry with the command to give', async () => {
    const { db, id } = await withDoubt()
    await using _ = db
    const run = async (...args: string[]) => await project.run([...args, '--database', db.url])
    const listed = JSON.parse((await run('effects', 'list', '--json')).stdout) as {
      effects: unknown[]
      next: null
    }
    const shown = await run('effects', 'show', 'send:email', 'order 42')
    const json = JSON.parse(
      (await run('effects', 'show', 'send:email', 'order 42', '--json')).stdout,
    ) as object
    const retried = await run('jobs', 'retry', id)
    const job = await run('jobs', 'show', id)

    expect(listed).toMatchObject({
      effects: [{ name: 'send:email', key: 'order 42', state: 'uncertain', askingJobs: [id] }],
      next: null,
    })
    expect((await run('effects', 'list')).stdout).toContain('send:email')
    expect((await run('effects', 'list', '--job', id)).stdout).toContain('order 42')
    expect((await run('effects', 'list', '--state', 'happened')).stdout).toBe('no effects\n')
    expect(shown.stdout).toContain('find out at the provider, then "holdfast effects resolve"')
    expect(shown.stdout).toMatch(/idempotency key +[\w-]{43}\n/)
    expect(shown.stdout.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
    expect(json).toMatchObject({
      idempotencyKey: expect.stringMatching(/^[\w-]{43}$/),
      audit: [],
      error: { message: expect.any(String) },
    })
    expect(retried.code).toBe(1)
    expect(retried.stderr).toContain(
      `holdfast effects resolve send:email 'order 42' --happened (or --repeat)`,
    )
    expect(job.stdout).toContain('send:email "order 42"  uncertain, calls: 1')
    expect(job.stdout).toMatch(/progress +50 % at .*: half/)
    expect(job.stdout).toContain('{"at": 1.10}')
    expect(JSON.parse((await run('jobs', 'show', id, '--json')).stdout)).toMatchObject({
      checkpoint: { at: 1.1 },
      progress: { fraction: 0.5, note: 'half' },
      effects: [{ key: 'order 42' }],
    })
  })

  it('resolves once, makes the job available, keeps who and why, and says what it did', async () => {
    const { db, id } = await withDoubt()
    await using _ = db
    const run = async (...args: string[]) => await project.run([...args, '--database', db.url])
    const resolve = [
      'effects',
      'resolve',
      'send:email',
      'order 42',
      '--happened',
      '--reason',
      'seen in their log',
    ]
    const first = await run(...resolve, '--result', '{"id": 7.0}', '--by', 'Ada')
    const second = await run(...resolve, '--json')
    const shown = await run('effects', 'show', 'send:email', 'order 42')
    const opposite = await run('effects', 'resolve', 'send:email', 'order 42', '--repeat', '--reason', 'x')

    expect(first).toMatchObject({ code: 0, stderr: '' })
    expect(first.stdout).toBe(
      `send:email "order 42" is decided: it happened\njob ${id}: available in queue "default"; attempt 2 of 3 is next\n`,
    )
    expect(JSON.parse(second.stdout)).toMatchObject({ status: 'unchanged', state: 'happened', jobs: [] })
    expect(shown.stdout).toContain('effect-happened by Ada: seen in their log')
    expect(shown.stdout).toContain('{"id": 7.0}')
    expect(opposite).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('is not in doubt: it happened'),
    })
    expect((await run('jobs', 'list', '--state', 'available')).stdout).toContain(id)
  })

  it('leaves the job with --no-retry, and names the user of the process where nobody is named', async () => {
    const { db, id } = await withDoubt()
    await using _ = db
    const run = async (...args: string[]) => await project.run([...args, '--database', db.url])
    const resolved = await run(
      'effects',
      'resolve',
      'send:email',
      'order 42',
      '--repeat',
      '--no-retry',
      '--reason',
      'never arrived',
    )

    expect(resolved.stdout).toContain(`job ${id}: left discarded; "holdfast jobs retry ${id}" runs it again`)
    expect(await db.sql('select action, note, length(actor) > 0 as named from holdfast.audit')).toEqual([
      { action: 'effect-repeat', note: 'never arrived', named: true },
    ])
    expect((await run('jobs', 'retry', id)).code).toBe(0)
  })

  it('refuses what cannot be right, and changes nothing', async () => {
    const { db } = await withDoubt()
    await using _ = db
    const run = async (...args: string[]) => await project.run([...args, '--database', db.url])
    const base = ['effects', 'resolve', 'send:email', 'order 42']
    for (const [args, code] of [
      [[...base, '--reason', 'x'], 2],
      [[...base, '--happened', '--repeat', '--reason', 'x'], 2],
      [[...base, '--happened'], 2],
      [[...base, '--happened', '--reason', 'x', '--result', '{'], 2],
      [['effects', 'resolve', 'send:email', 'nowhere', '--happened', '--reason', 'x'], 1],
      [['effects', 'show', 'send:email', 'nowhere'], 1],
      [['effects', 'list', '--state', 'odd'], 2],
      [['effects', 'list', '--job', 'x'], 2],
    ] as const)
      expect(await run(...args)).toMatchObject({
        code,
        stdout: '',
        stderr: expect.stringMatching(/^error: /),
      })
    expect(await db.sql('select state::text from holdfast.effect')).toEqual([{ state: 'uncertain' }])
  })
})

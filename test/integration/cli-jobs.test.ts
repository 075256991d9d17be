import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { CliProject } from './cli-project.ts'

let project: CliProject

beforeAll(() => {
  project = new CliProject()
})
afterAll(async () => await project[Symbol.asyncDispose]())

async function withJobs(): Promise<TestDatabase> {
  const db = await createDatabase()
  await db.sql(
    `insert into holdfast.job_definition (name, queue, priority, max_attempts) values ('work', 'default', 0, 2)`,
  )
  return db
}

async function enqueue(db: TestDatabase, options = ''): Promise<string> {
  const [row] = await db.sql<{ id: string }>(`select id::text from holdfast.enqueue('work'${options})`)
  return row?.id as string
}

function on(db: TestDatabase) {
  return async (...args: string[]) => await project.run([...args, '--database', db.url])
}

describe('holdfast jobs', () => {
  it('lists by pages that can be followed by their cursor, for people and as JSON', async () => {
    await using db = await withJobs()
    const run = on(db)
    expect((await run('jobs', 'list')).stdout).toBe('no jobs\n')
    const ids = [await enqueue(db), await enqueue(db), await enqueue(db, ', delay_ms => 60000')]
    const first = JSON.parse((await run('jobs', 'list', '--limit', '2', '--json')).stdout) as {
      jobs: { id: string }[]
      next: string
    }
    const second = JSON.parse(
      (await run('jobs', 'list', '--limit', '2', '--after', first.next, '--json')).stdout,
    ) as {
      jobs: { id: string }[]
      next: null
    }
    expect([...first.jobs, ...second.jobs].map(({ id }) => id)).toEqual([...ids].reverse())
    expect(second.next).toBeNull()
    const table = (await run('jobs', 'list', '--limit', '2')).stdout.split('\n')
    expect(table[0]).toMatch(/^ *id +state +name/)
    expect(table.at(-2)).toBe(`more: --after ${first.next}`)
    expect((await run('jobs', 'list', '--state', 'sleeping')).stderr).toContain(
      'state must be one of scheduled, available',
    )
  })

  it('shows a job with its input digit for digit, and nothing that a terminal would obey', async () => {
    await using db = await withJobs()
    const run = on(db)
    const input = '{"n": 12345678901234567890.10, "s": "\\u001b[2J"}'
    const id = await enqueue(db, `, input => '${input}'::json, unique_key => 'order-日本'`)
    const text = (await run('jobs', 'show', id)).stdout
    expect(text).toContain(input)
    expect(text).toContain('no worker is alive')
    expect(text.replaceAll('\n', '')).not.toMatch(/\p{Cc}/u)
    expect((await run('jobs', 'show', id, '--json')).stdout).toContain(`"input": ${input}`)
    expect(await run('jobs', 'show', '424242')).toMatchObject({
      code: 1,
      stdout: '',
      stderr: expect.stringContaining('there is no job 424242'),
    })
  })

  it('retries what is discarded, refuses what is not, and names the job that holds the key', async () => {
    await using db = await withJobs()
    const run = on(db)
    const id = await enqueue(db, `, unique_key => 'k'`)
    expect(await run('jobs', 'discard', id)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('reason is missing'),
    })
    expect((await run('jobs', 'discard', id, '--reason', 'wrong address')).code).toBe(0)
    expect((await run('jobs', 'show', id)).stdout).toContain('wrong address')
    const holder = await enqueue(db, `, unique_key => 'k'`)
    const conflict = await run('jobs', 'retry', id)
    expect(conflict.code).toBe(1)
    expect(conflict.stderr).toMatch(
      new RegExp(`^error: job ${id}: job ${holder} of "work" has the same unique key`),
    )
    expect((await run('jobs', 'cancel', holder)).code).toBe(0)
    const both = await run('jobs', 'retry', id, '77')
    expect(both.code).toBe(1)
    expect(both.stdout).toMatch(
      new RegExp(`^${id}: available in queue "default"; attempt 1 of 2 is next\n77: there is no job 77`),
    )
    expect(both.stderr).toContain('1 of 2 jobs were left as they are: 77')
    expect((await run('jobs', 'retry', id)).stderr).toContain(
      'is available, and only discarded or cancelled jobs',
    )
    expect((await run('jobs', 'show', id)).stdout).toMatch(/attempt 0 ended: discarded: wrong address/)
  })

  it('re-routes what a removed queue has left behind, which status reports', async () => {
    await using db = await withJobs()
    const run = on(db)
    const id = await enqueue(db, `, queue => 'removed'`)
    await enqueue(db, `, queue => 'removed', delay_ms => 60000`)
    expect((await run('status')).stdout).toMatch(
      /queues that nobody serves\n {2}removed: 2; serve it, or: holdfast jobs move/,
    )
    expect((await run('jobs', 'move', id, '--queue', 'default')).stdout).toBe(`${id}: moved to "default"\n`)
    expect((await run('jobs', 'move', '--from-queue', 'removed', '--all', '--queue', 'default')).stdout).toBe(
      '1 waiting job moved from "removed" to "default"\n',
    )
    expect((await run('jobs', 'move', '--from-queue', 'removed', '--queue', 'default')).code).toBe(2)
    expect((await run('jobs', 'list', '--queue', 'removed')).stdout).toBe('no jobs\n')
  })

  it('prunes ended jobs, and discarded ones only when they are named', async () => {
    await using db = await withJobs()
    const run = on(db)
    const [cancelled, discarded] = [await enqueue(db), await enqueue(db)]
    await run('jobs', 'cancel', cancelled)
    await run('jobs', 'discard', discarded, '--reason', 'x')
    expect((await run('jobs', 'prune')).stdout).toContain(
      '0 cancelled jobs deleted that ended more than 7 days ago',
    )
    expect((await run('jobs', 'prune', '--older-than-days', '0')).stdout).toContain('1 cancelled job deleted')
    expect(await db.sql('select job_id::text from holdfast.outcome')).toEqual([{ job_id: discarded }])
    expect((await run('jobs', 'prune', '--state', 'discarded', '--older-than-days', '0')).code).toBe(0)
    expect(await db.sql('select id from holdfast.job')).toEqual([])
  })

  it('refuses to pause or resume a queue that nobody knows', async () => {
    await using db = await withJobs()
    for (const verb of ['pause', 'resume']) {
      const refused = await on(db)('queues', verb, 'defualt')
      expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('known are: default') })
    }
    expect(await db.sql('select * from holdfast.queue')).toEqual([])
  })
})

import fs from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { appText, CliProject, type CliRun } from './cli-project.ts'

let project: CliProject

beforeAll(() => {
  project = new CliProject()
  project.write('app.ts', appText)
})
afterAll(async () => await project[Symbol.asyncDispose]())

/** The command on a database alone, without an app file. */
function on(db: TestDatabase) {
  const withUrl = (args: readonly string[]) => [...args, '--database', db.url]
  return {
    run: async (...args: string[]) => await project.run(withUrl(args)),
    json: async <T = Record<string, unknown>>(...args: string[]) => await project.json<T>(withUrl(args)),
  }
}

async function enqueue(db: TestDatabase, input: unknown = {}, options = ''): Promise<string> {
  const text = `select id::text from holdfast.enqueue('work', $1::json${options})`
  const [row] = await db.sql<{ id: string }>(text, [
    typeof input === 'string' ? input : JSON.stringify(input),
  ])
  return row?.id as string
}

async function migrated(): Promise<TestDatabase> {
  const db = await createDatabase({ migrated: false })
  const { code, stderr } = await project.run(['migrate', 'app.ts'], { env: { DATABASE_URL: db.url } })
  expect(stderr).toBe('')
  expect(code).toBe(0)
  return db
}

function startWorker(db: TestDatabase, args: readonly string[] = [], env: Record<string, string> = {}) {
  return project.start(['worker', 'app.ts', ...args], { env: { DATABASE_URL: db.url, ...env } })
}

describe('holdfast', () => {
  it('prints help and version, and refuses what it does not know with exit code 2', async () => {
    const help = await project.run(['--help'])
    expect(help.code).toBe(0)
    for (const name of ['dev', 'migrate', 'worker', 'jobs', 'queues', 'status', 'check', 'manifest'])
      expect(help.stdout).toContain(name)
    expect((await project.run(['jobs', 'list', '--help'])).stdout).toContain('--after')
    expect((await project.run(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
    for (const args of [
      ['jobz'],
      ['jobs', 'explode'],
      ['jobs', 'list', '--quue', 'x'],
      ['jobs', 'list', 'x'],
      ['jobs', 'show'],
      ['jobs', 'list', '--limit'],
      ['jobs', 'move', '1'],
      ['toString'],
      ['jobs', 'constructor'],
    ]) {
      const refused = await project.run([...args])
      expect([args, refused.code, refused.stderr]).toEqual([args, 2, expect.stringMatching(/^error: \S/)])
      expect(refused.stderr).not.toContain('    at ')
    }
  })

  it('checks every number before anything is sent', async () => {
    const cases: readonly (readonly string[])[] = [
      ...['0', '-1', '1.5', '1001', 'NaN', 'Infinity', '1e2', '0x10', '9'.repeat(30)].map((limit) => [
        'jobs',
        'list',
        `--limit=${limit}`,
      ]),
      ...['-1', 'x', '4000', 'Infinity'].map((days) => ['jobs', 'prune', `--older-than-days=${days}`]),
      ...['0', '-2', '2.5', 'x', '10001', ''].map((n) => ['worker', 'app.ts', `--concurrency=default=${n}`]),
      ...['0', '-1', 'abc', '9223372036854775808', "1'; drop table x"].map((id) => ['jobs', 'show', `${id}`]),
    ]
    const runs = await Promise.all(
      cases.map(
        async (args) =>
          [
            args,
            await project.run(
              args.includes('app.ts') ? args : [...args, '--database', 'postgres://u@127.0.0.1:1/x'],
            ),
          ] as const,
      ),
    )
    for (const [args, { code, stderr }] of runs) {
      // An id is looked at by the command that gets it, after the connection.
      const expected = args[1] === 'show' ? [1, 2] : [2]
      expect([args, expected.includes(code ?? -1), stderr]).toEqual([
        args,
        true,
        expect.stringMatching(/^error: /),
      ])
    }
  })

  it('never prints a password, however the address is spelled', async () => {
    const spellings = [
      'postgres://u:S3cret@127.0.0.1:1/db',
      'postgress://u:S3cret@127.0.0.1:1/db',
      'postgres:/u:S3cret@h/db',
      'jdbc:postgresql://u:S3cret@h/db',
      'postgres://u:p@S3cret%41@127.0.0.1:1/db',
      'postgres://u:S3cret/%zz@127.0.0.1:1/db',
      'postgres://127.0.0.1:1/db?user=u&password=S3cret',
      'u:S3cret@h',
    ]
    const runs: CliRun[] = await Promise.all(
      spellings.flatMap((url) => [
        project.run(['status', '--database', url]),
        project.run(['status', '--app', url]),
        project.run(['migrate', url]),
        project.run([url]),
        project.run(['worker', 'app.ts', '--log-level', 'debug'], { env: { DATABASE_URL: url } }),
      ]),
    )
    for (const { code, stdout, stderr } of runs) {
      expect(code).toBeGreaterThan(0)
      expect(stdout + stderr).not.toContain('S3cret')
      expect(stderr).toMatch(/^error: /)
    }
  })

  it('refuses an unreachable host and a mistyped folder, and makes nothing there', async () => {
    const unreachable = await project.run(['status', '--database', 'postgres://u@127.0.0.1:1/x'])
    expect(unreachable.code).toBe(1)
    expect(unreachable.stderr).toMatch(/could not be reached.*\n\s+because: .*ECONNREFUSED/)
    const mistyped = await project.run(['status', '--database', 'pglite:./dtaa'])
    expect(mistyped.code).toBe(2)
    expect(mistyped.stderr).toContain('there is no database folder "./dtaa"')
    expect((await project.run(['status', '--app', 'nowhere.ts'])).stderr).toContain('there is no app file')
  })

  it('says what is wrong with an app file', async () => {
    project.write('empty/package.json', '{ "type": "module" }')
    project.write('empty/nothing.ts', 'export const x = 1')
    project.write('empty/broken.ts', 'throw new Error("no settings")')
    project.write('empty/unqueued.ts', appText.replace("queue: 'mail', input", "queue: 'post', input"))
    project.write('plain/package.json', '{}')
    project.write('plain/app.ts', appText)
    const run = async (file: string) => await project.run(['manifest', file])
    expect((await run('empty/nothing.ts')).stderr).toContain('export default defineApp')
    expect((await run('empty/broken.ts')).stderr).toContain('no settings')
    expect((await run('plain/app.ts')).stderr).toContain('"type": "module"')
    for (const args of [['manifest'], ['worker'], ['migrate']]) {
      const unqueued = await project.run([...args, 'empty/unqueued.ts'])
      expect(unqueued.code).toBe(2)
      expect(unqueued.stderr).toContain('job "mail.send" goes to queue "post", which is not configured')
    }
  })

  it('prints a manifest that can be compared, without a database', async () => {
    const first = await project.run(['manifest', 'app.ts', '--json'], {
      env: { DATABASE_URL: 'postgres://127.0.0.1:1/x' },
    })
    expect(first.code).toBe(0)
    expect(JSON.parse(first.stdout)).toMatchObject({
      app: 'cli-test',
      queues: [
        { name: 'default', concurrency: 10 },
        { name: 'mail', concurrency: 3 },
      ],
      jobs: [
        { name: 'mail.send', queue: 'mail', contract: expect.stringMatching(/^[0-9a-f]{16}$/) },
        { name: 'work', queue: 'default', maxAttempts: 2 },
      ],
    })
    expect((await project.run(['manifest', 'app.ts', '--json'])).stdout).toBe(first.stdout)
    expect((await project.run(['manifest'])).stdout).toContain('mail.send')
  })

  it('draws who enqueues what', async () => {
    const { code, stdout } = await project.run(['manifest', 'app.ts', '--graph'])
    expect(code).toBe(0)
    expect(stdout).toMatch(/^flowchart LR\n/)
    expect(stdout).toContain('job_mail_2e_send["mail.send"]')
  })

  it('checks an app before a deploy: all faults at once, with exit code 1', async () => {
    const faulty = appText
      .replace("queue: 'mail', input", "queue: 'post', input, effects: ['send:email', 'enqueue:gone']")
      .replace('leaseMs: 1000', 'leaseMs: 1')
    project.write('faulty.ts', faulty)

    const found = await project.run(['check', 'faulty.ts', '--no-database', '--json'])
    const sound = await project.run(['check', '--no-database'])

    expect(found.code).toBe(1)
    const { faults } = JSON.parse(found.stdout) as { readonly faults: readonly string[] }
    expect(faults).toHaveLength(4)
    for (const part of ['leaseMs', 'queue "post"', 'job "mail.send" declares "send:email"', 'no job "gone"'])
      expect(faults.join('\n')).toContain(part)
    expect(sound).toMatchObject({ code: 0, stdout: 'cli-test\nthe declaration is sound\n', stderr: '' })
    expect(fs.existsSync(path.join(project.folder, 'data'))).toBe(false)
    const text = await project.run(['check', 'faulty.ts', '--no-database'])
    expect(text.stdout.split('\n').filter((line) => line.startsWith('- '))).toHaveLength(4)
    expect(text.stderr).toContain('4 faults')
  })

  it('checks the schema too, where the database can be reached', async () => {
    await using db = await createDatabase({ migrated: false })
    const check = async (url: string) =>
      await project.run(['check', 'app.ts', '--json'], { env: { DATABASE_URL: url } })

    const missing = await check(db.url)
    await project.run(['migrate', 'app.ts'], { env: { DATABASE_URL: db.url } })
    const fits = await check(db.url)
    const away = await check('postgres://127.0.0.1:1/x')

    expect(missing.code).toBe(1)
    expect(JSON.parse(missing.stdout)).toMatchObject({
      schema: { state: 'missing' },
      faults: [expect.stringContaining('holdfast migrate')],
    })
    expect(fits.code).toBe(0)
    expect(JSON.parse(fits.stdout)).toMatchObject({
      app: 'cli-test',
      faults: [],
      schema: { state: 'current' },
    })
    expect(away.code).toBe(0)
    expect(JSON.parse(away.stdout)).toMatchObject({
      faults: [],
      schema: null,
      unreachable: expect.any(String),
    })
  })

  it('reports a missing or changed schema with exit code 4', async () => {
    await using db = await createDatabase({ migrated: false })
    const missing = await on(db).run('jobs', 'list')
    expect(missing.code).toBe(4)
    expect(missing.stderr).toContain('holdfast migrate')
    expect((await on(db).run('status')).code).toBe(4)
    expect((await startWorker(db).ended).code).toBe(4)
    expect((await on(db).run('migrate')).code).toBe(0)
    expect((await on(db).run('migrate')).stdout).toContain('nothing to do')
    await db.sql("insert into holdfast.migration (version, name, breaking) values (9999, '9999-new', true)")
    expect((await startWorker(db).ended).code).toBe(4)
    expect((await on(db).run('status')).stdout).toContain('deploy that one')
    await db.sql('update holdfast.migration set breaking = false where version = 9999')
    expect((await on(db).run('status')).code).toBe(0)
  })

  it('works in any schema, with text taken literally', async () => {
    await using db = await createDatabase({ migrated: false })
    const schema = `My-"schema"; 'x`
    const withSchema = async (...args: string[]) => await on(db).run(...args, '--schema', schema)
    expect((await withSchema('migrate')).stderr).toBe('')
    const quoted = `"${schema.replaceAll('"', '""')}"`
    const queue = `qu'eue "two"; -- 日本`
    await db.sql(
      `insert into ${quoted}.job_definition (name, queue, priority, max_attempts) values ('Wörk; --', $1, 0, 3)`,
      [queue],
    )
    await db.sql(`select ${quoted}.enqueue('Wörk; --')`)
    const list = await withSchema('jobs', 'list', '--queue', queue, '--name', 'Wörk; --', '--json')
    expect(JSON.parse(list.stdout)).toMatchObject({ jobs: [{ name: 'Wörk; --', queue }] })
    expect((await withSchema('queues', 'pause', queue)).code).toBe(0)
    expect((await withSchema('queues', 'pause', queue.toUpperCase())).code).toBe(2)
    expect(
      (await withSchema('jobs', 'move', '--from-queue', queue, '--all', '--queue', 'a')).stdout,
    ).toContain('1 waiting job')
  })

  it('runs the exercise: absent after rollback, discoverable after commit, owner and lease shown, then attempt 2 with history', async () => {
    await using db = await migrated()
    const cli = on(db)
    const client = await db.connect()
    await client.query('begin')
    await client.query(`select holdfast.enqueue('work', '{"wait": 60000}'::json)`)
    await client.query('rollback')
    expect(await cli.json('jobs', 'list')).toEqual({ jobs: [], next: null })

    const id = await enqueue(db, { wait: 60_000 }, `, unique_key => 'order-1'`)
    const waiting = await cli.json('jobs', 'show', id)
    expect(waiting).toMatchObject({
      state: 'available',
      explanation: expect.stringContaining('no worker is alive'),
    })

    let workerId = ''
    {
      await using first = startWorker(db, ['--name', 'first'])
      await eventually('the job is executing', async () => {
        const shown = await cli.json('jobs', 'show', id)
        workerId = String(shown['workerId'])
        return shown['state'] === 'executing' && shown
      })
      first.signal('SIGKILL')
      await first.ended
    }
    const owned = await cli.json('jobs', 'show', id)
    expect(owned).toMatchObject({
      state: 'executing',
      attempts: 1,
      workerId,
      workerName: 'first',
      leaseUntil: expect.stringMatching(/^\d{4}-/),
      finishedAt: null,
    })

    await using second = startWorker(db, ['--name', 'second'])
    const taken = await eventually('attempt 2 is executing', async () => {
      const shown = await cli.json('jobs', 'show', id)
      return shown['state'] === 'executing' && shown['attempts'] === 2 && shown
    })
    expect(taken).toMatchObject({
      workerName: 'second',
      history: [{ attempt: 1, ended: 'worker-lost', workerId, error: { name: 'WorkerLostError' } }],
    })
    const text = (await cli.run('jobs', 'show', id)).stdout
    expect(text).toMatch(
      /enqueued\n.*attempt 1 ended: worker-lost on worker \d+.*\n.*attempt 2 claimed by worker \d+; not ended yet/,
    )
    expect(text).not.toMatch(/delivered|completed/)
    second.signal('SIGTERM')
    // Two signals of a kind at once may arrive as one.
    await second.says('running jobs may end')
    second.signal('SIGTERM')
    await second.ended
  })
})

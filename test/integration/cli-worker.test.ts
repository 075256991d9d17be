import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { appText, CliProject } from './cli-project.ts'

let project: CliProject

beforeAll(() => {
  project = new CliProject()
  project.write('app.ts', appText)
})
afterAll(async () => await project[Symbol.asyncDispose]())

async function migrated(): Promise<TestDatabase> {
  const db = await createDatabase({ migrated: false })
  const { code, stderr } = await project.run(['migrate'], { env: { DATABASE_URL: db.url } })
  expect(stderr).toBe('')
  expect(code).toBe(0)
  return db
}

async function enqueue(db: TestDatabase, input: unknown = {}, options = ''): Promise<string> {
  const text = `select id::text from holdfast.enqueue('work', $1::json${options})`
  const [row] = await db.sql<{ id: string }>(text, [JSON.stringify(input)])
  return row?.id as string
}

function startWorker(db: TestDatabase, args: readonly string[] = [], env: Record<string, string> = {}) {
  return project.start(['worker', ...args], { env: { DATABASE_URL: db.url, ...env } })
}

async function stateOf(db: TestDatabase, id: string): Promise<string> {
  const [row] = await db.sql<{ state: string }>('select state from holdfast.jobs where id = $1', [id])
  return row?.state ?? 'missing'
}

/** The start of a worker's process may be in it, on a busy machine. */
async function reaches(db: TestDatabase, id: string, state: string): Promise<void> {
  const isThere = async () => (await stateOf(db, id)) === state
  try {
    await eventually(`job ${id} is ${state}`, isThere, { deadlineMs: 40_000 })
  } catch (cause) {
    throw new Error(`${(cause as Error).message}; ${project.output()}`, { cause })
  }
}

/** Sockets on which the process listens, as the kernel tells. */
function listeningSockets(pid: number): readonly string[] {
  const own = new Set(
    fs.readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
      try {
        return [fs.readlinkSync(`/proc/${pid}/fd/${fd}`)]
      } catch {
        // Closed since.
        return []
      }
    }),
  )
  const listening = ['tcp', 'tcp6'].flatMap((table) =>
    fs
      .readFileSync(`/proc/${pid}/net/${table}`, 'utf8')
      .split('\n')
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === '0A')
      .map((fields) => `socket:[${fields[9]}]`),
  )
  return listening.filter((socket) => own.has(socket))
}

describe('holdfast worker', () => {
  it('runs jobs, listens on no socket, logs JSON lines, and exits with 0 at SIGTERM when its jobs have ended', async () => {
    await using db = await migrated()
    const id = await enqueue(db, { wait: 1500, n: 7 })
    await using worker = startWorker(db, ['--log-level', 'debug'])
    await reaches(db, id, 'executing')
    expect(listeningSockets(worker.pid)).toEqual([])
    worker.signal('SIGTERM')
    const { code, stdout, stderr } = await worker.ended
    expect(stderr).toBe('')
    expect(code).toBe(0)
    expect(await stateOf(db, id)).toBe('completed')
    expect(await db.sql('select id from holdfast.worker')).toEqual([])
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(lines).toContainEqual(
      expect.objectContaining({ level: 'info', message: 'working', n: 7, jobId: id }),
    )
    expect(lines.map((line) => line['event'])).toEqual(
      expect.arrayContaining(['worker.started', 'attempt.started', 'job.completed', 'worker.stopped']),
    )
  })

  it('aborts what runs at a second signal, and hands back what does not end, attempt unused', async () => {
    await using db = await migrated()
    const waiting = await enqueue(db, { wait: 60_000 })
    const deaf = await enqueue(db, { deaf: 60_000 })
    await using worker = startWorker(db)
    await reaches(db, waiting, 'executing')
    await reaches(db, deaf, 'executing')
    worker.signal('SIGINT')
    await worker.says('running jobs may end')
    worker.signal('SIGTERM')
    expect(await worker.ended).toMatchObject({ code: 0, stderr: '' })
    for (const id of [waiting, deaf]) expect(await stateOf(db, id)).toBe('available')
    expect(await db.sql('select attempts from holdfast.ready')).toEqual([{ attempts: 0 }, { attempts: 0 }])
  })

  it('serves only the queues it is told to, warns of the others, and refuses a malformed setting', async () => {
    await using db = await migrated()
    const id = await enqueue(db)
    const [mail] = await db.sql<{ id: string }>(`select id::text from holdfast.enqueue('mail.send', '{}')`)
    await using worker = startWorker(db, ['--queues', 'mail', '--concurrency', 'mail=2', '--name', 'mailer'])
    await reaches(db, mail?.id as string, 'completed')
    expect(worker.output()).toContain('this worker does not serve default')
    expect(await stateOf(db, id)).toBe('available')
    const env = { DATABASE_URL: db.url }
    const status = await project.json<{ workers: unknown[]; unserved: unknown[] }>(['status'], { env })
    expect(status).toMatchObject({
      workers: [{ name: 'mailer', queues: [{ name: 'mail', concurrency: 2 }], isAlive: true }],
      unserved: [{ name: 'default', available: '1' }],
    })
    expect((await project.run(['jobs', 'show', id], { env })).stdout).toContain(
      'no live worker serves queue "default"',
    )
    for (const args of [
      ['--queues', 'mial'],
      ['--queues', ''],
      ['--concurrency', 'mail'],
      ['--concurrency', 'mail=x'],
    ]) {
      const refused = await startWorker(db, args).ended
      expect([args, refused.code, refused.stderr]).toEqual([args, 2, expect.stringMatching(/^error: /)])
    }
  })

  it('ends with code 4 and a message when the schema is dropped under it', async () => {
    await using db = await migrated()
    await using worker = startWorker(db)
    await worker.says('started')
    // Dropping takes locks in an order of its own, and may lose to a statement of the worker's.
    await eventually('the schema is dropped', async () => {
      await db.sql('drop schema holdfast cascade')
      return true
    })
    const { code, stderr } = await worker.ended
    expect(code).toBe(4)
    expect(stderr).toMatch(/^error: the worker cannot go on: schema "holdfast".*holdfast migrate/)
  })

  it('goes on when whoever reads its log has gone', async () => {
    await using db = await migrated()
    await using worker = startWorker(db, ['--log-level', 'debug'])
    await worker.says('started')
    worker.closeOutput()
    const ids = [await enqueue(db, { wait: 300 }), await enqueue(db)]
    for (const id of ids) await reaches(db, id, 'completed')
    worker.signal('SIGTERM')
    expect((await worker.ended).code).toBe(0)
  })

  it('lives on and works again when all its connections are cut while it is idle', async () => {
    await using db = await migrated()
    await using worker = startWorker(db)
    await worker.says('started')
    await db.sql(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
    )
    const id = await enqueue(db)
    await reaches(db, id, 'completed')
    worker.signal('SIGTERM')
    expect((await worker.ended).code).toBe(0)
  })

  it('drains and ends with code 75 when a handler never returns, so that a supervisor starts it again', async () => {
    await using db = await migrated()
    const stuck = await enqueue(db, { stuck: true })
    const other = await enqueue(db, { wait: 1200 })
    await using worker = startWorker(db, [], { TIMEOUT_MS: '500' })
    const { code, stderr } = await worker.ended
    expect(code).toBe(75)
    expect(stderr).toContain(`the handler of job ${stuck} (work) does not return`)
    expect(await stateOf(db, stuck)).toBe('retryable')
    expect(['retryable', 'completed']).toContain(await stateOf(db, other))
  })

  it('parks a job that only a newer release knows, reports it, and leaves it to a worker that does', async () => {
    await using db = await migrated()
    project.write('newer.ts', appText.replaceAll("'mail.send'", "'mail.sendNew'"))
    const env = { DATABASE_URL: db.url }
    expect((await project.run(['migrate', 'newer.ts'], { env })).code).toBe(0)
    const [row] = await db.sql<{ id: string }>(`select id::text from holdfast.enqueue('mail.sendNew', '{}')`)
    const id = row?.id as string
    await using older = startWorker(db)
    await older.says('parked')
    const shown = await project.json(['jobs', 'show', id], { env })
    expect(shown).toMatchObject({
      state: 'available',
      attempts: 0,
      explanation: expect.stringMatching(
        /^parked since .* it waits for a worker that knows job "mail.sendNew"/,
      ),
    })
    expect(await project.json(['status'], { env })).toMatchObject({
      parked: [{ name: 'mail.sendNew', jobs: '1' }],
    })
    await using newer = project.start(['worker', 'newer.ts'], { env })
    await reaches(db, id, 'completed')
    expect(newer.output()).not.toContain('parked')
  })

  it('cancels a running job from another process within a second, whatever its handler does then', async () => {
    await using db = await migrated()
    const id = await enqueue(db, { wait: 60_000 })
    await using worker = startWorker(db)
    await reaches(db, id, 'executing')
    const env = { DATABASE_URL: db.url }
    const cancelled = await project.run(['jobs', 'cancel', id, '--reason', 'not wanted'], { env })
    expect(cancelled).toMatchObject({ code: 0, stdout: expect.stringContaining('it ends cancelled') })
    await reaches(db, id, 'cancelled')
    expect(await project.run(['jobs', 'cancel', id], { env })).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('is cancelled already'),
    })
    expect(worker.output()).toContain('cancelled')
  })

  it('is woken at once, not at its next look, by a resumed queue and by jobs that are retried or moved', async () => {
    await using db = await migrated()
    const env = { DATABASE_URL: db.url }
    await project.run(['queues', 'pause', 'default'], { env })
    const [resumed, retried, moved] = [
      await enqueue(db),
      await enqueue(db),
      await enqueue(db, {}, `, queue => 'x'`),
    ]
    await project.run(['jobs', 'cancel', retried], { env })
    await using worker = startWorker(db, [], { POLL_MS: '600000' })
    await worker.says('started')
    await eventually('it sleeps', async () => (await db.sql('select from holdfast.waiter')).length > 0)
    await project.run(['queues', 'resume', 'default'], { env })
    await reaches(db, resumed, 'completed')
    for (const [id, args] of [
      [retried, ['retry', retried]],
      [moved, ['move', moved, '--queue', 'default']],
    ] as const) {
      await eventually('it sleeps', async () => (await db.sql('select from holdfast.waiter')).length > 0)
      expect((await project.run(['jobs', ...args], { env })).code).toBe(0)
      await reaches(db, id, 'completed')
    }
  })

  it('starts nothing of a paused queue, also after a restart, until it is resumed', async () => {
    await using db = await migrated()
    const env = { DATABASE_URL: db.url }
    const paused = await project.run(['queues', 'pause', 'default', '--reason', 'provider down'], { env })
    expect(paused).toMatchObject({ code: 0, stdout: expect.stringContaining('is paused since') })
    const id = await enqueue(db)
    await using worker = startWorker(db)
    await worker.says('started')
    const [mail] = await db.sql<{ id: string }>(`select id::text from holdfast.enqueue('mail.send', '{}')`)
    await reaches(db, mail?.id as string, 'completed')
    expect(await stateOf(db, id)).toBe('available')
    expect((await project.run(['queues'], { env })).stdout).toMatch(/default .*since .*: provider down/)
    expect((await project.run(['queues', 'resume', 'default'], { env })).code).toBe(0)
    await reaches(db, id, 'completed')
  })
})

describe('holdfast on the embedded database', () => {
  it('migrates, runs and shows jobs, one process at a time', async () => {
    const id = 'pglite:./embedded'
    expect(await project.run(['migrate', '--database', id])).toMatchObject({ code: 0, stderr: '' })
    const env = { DATABASE_URL: id }
    expect((await project.run(['migrate', 'app.ts'], { env })).code).toBe(0)
    await using worker = project.start(['worker'], { env })
    await worker.says('started')
    const locked = await project.run(['status', '--database', id])
    expect(locked.code).toBe(1)
    expect(locked.stderr).toContain(`is open in process ${worker.pid}`)
    worker.signal('SIGTERM')
    expect(await worker.ended).toMatchObject({ code: 0, stderr: '' })
    expect((await project.run(['status', '--database', id])).stdout).toContain('no worker is alive')
  })
})

describe('holdfast dev', () => {
  it('migrates and works on the embedded database, starts anew when a file changes, and ends at SIGINT', async () => {
    const producer = `
import app, { work } from './app.ts'
import { note } from './note.ts'
app.events.on('worker.started', () => void app.enqueue(work, { n: note }))
export default app
`
    project.write('dev/package.json', '{ "type": "module" }')
    project.write('dev/app.ts', appText)
    project.write('dev/note.ts', 'export const note: number = 1')
    const file = project.write('dev/main.ts', producer)
    await using dev = project.start(['dev', file, '--no-color'])
    await dev.says('n=1\n')
    project.write('dev/note.ts', 'export const note: number = ; // a slip')
    await dev.says('waiting for a change')
    project.write('dev/note.ts', 'export const note: number = 22')
    await dev.says('n=22\n')
    dev.signal('SIGINT')
    expect((await dev.ended).code).toBe(0)
    expect(fs.existsSync(path.join(project.folder, '.holdfast'))).toBe(true)
    const left = execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' })
    expect(left).not.toContain(file)
  })
})

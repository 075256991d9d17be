import { expect, it } from 'vitest'
import { startPostgres, volatileSettings } from '../../scripts/postgres-server.ts'
import { channelOf } from '../../src/base/channel.ts'
import { defineJob } from '../../src/index.ts'
import { type AppSettings, appOn, type OpenedApp, openApp } from '../faults/apps.ts'
import { anything } from '../faults/handlers.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { startProxy } from '../support/proxy.ts'

const note = defineJob({ name: 'note', input: anything<unknown>(), idempotent: true, handler: () => 'ran' })
const other = defineJob({
  name: 'other',
  queue: 'other',
  input: anything<unknown>(),
  idempotent: true,
  handler: () => 'ran',
})

async function waiting({ db }: { readonly db: TestDatabase }, workers = 1): Promise<void> {
  await eventually('the workers have said that they wait', async () => {
    const [row] = await db.sql('select count(distinct worker_id)::int as n from holdfast.waiter')
    return row?.['n'] === workers
  })
}

/**
 * Starts a worker and waits until it sleeps for long: its listener is up, it has said that it waits, and its looks
 * at growing intervals, of which the longest is 2 s, are over.
 */
async function asleep(opened: OpenedApp): Promise<void> {
  await opened.app.worker().start()
  await waiting(opened)
  await listening(opened)
  await quiet(opened)
}

async function quiet({ db }: { readonly db: TestDatabase }, workers = 1): Promise<void> {
  await eventually('it does not look any more', async () => {
    const rows = await db.sql(
      `select from pg_stat_activity where datname = current_database() and query like '%holdfast:claim_%jobs%'
       and state = 'idle' and query_start < now() - interval '2300 ms'`,
    )
    return rows.length === workers
  })
}

async function listening({ db }: { readonly db: TestDatabase }): Promise<number> {
  return await eventually('it listens', async () => {
    const [row] = await db.sql<{ pid: number }>(
      `select pid from pg_stat_activity where datname = current_database() and query ilike 'listen%'`,
    )
    return row?.pid
  })
}

/** What is announced from now on. */
async function hear(db: TestDatabase) {
  const listener = await db.connect()
  const heard: (string | undefined)[] = []
  listener.on('notification', (message) => heard.push(message.payload))
  await listener.query(`listen ${channelOf('holdfast')}`)
  return { listener, heard }
}

const slow: AppSettings = { jobs: [note], maxPollMs: 60_000 }

it('an idle worker starts a committed job well under its poll interval', async () => {
  await using opened = await openApp(slow)
  await asleep(opened)
  const { id } = await opened.app.enqueue(note, 1)

  expect(await opened.app.job(id).wait({ timeoutMs: 2000 })).toMatchObject({ state: 'completed' })
})

it('nothing is announced before a commit, or by a rollback', async () => {
  await using opened = await openApp(slow)
  const { app, db, events } = opened
  await asleep(opened)
  const { listener, heard } = await hear(db)
  const producer = await db.connect()

  await producer.query('begin')
  await app.enqueue(note, 1, { tx: producer })
  await listener.query('select 1')
  const beforeCommit = heard.length
  await producer.query('rollback')
  await listener.query('select 1')
  const afterRollback = heard.length
  await producer.query('begin')
  const { id } = await app.enqueue(note, 1, { tx: producer })
  await producer.query('commit')
  await app.job(id).wait({ timeoutMs: 2000 })
  await listener.query('select 1')

  expect([beforeCommit, afterRollback]).toEqual([0, 0])
  expect(heard.length).toBeGreaterThanOrEqual(1)
  expect(events.of('attempt.started').map((e) => e.jobId)).toEqual([id])
})

it('the listener comes back when its backend is terminated, told and looked again, never in a transaction', async () => {
  await using opened = await openApp(slow)
  const { app, db, events } = opened
  await asleep(opened)
  const pid = await listening(opened)

  await db.sql('select pg_terminate_backend($1)', [pid])
  await events.first('wakeup.degraded')
  // As if it came back at a server that had not got all commits of the one before.
  await db.sql('delete from holdfast.waiter')
  // From the gap: nobody listens, so this announcement is lost.
  const gap = await app.enqueue(note, 1)

  expect(await app.job(gap.id).wait({ timeoutMs: 3000 })).toMatchObject({ state: 'completed' })
  const restored = await events.first('wakeup.restored')
  expect(restored.downMs).toBeGreaterThan(0)
  const newPid = await listening(opened)
  expect(newPid).not.toBe(pid)
  expect(await db.sql('select state from pg_stat_activity where pid = $1', [newPid])).toEqual([
    { state: 'idle' },
  ])
  await waiting(opened)
  const { id } = await app.enqueue(note, 2)
  expect(await app.job(id).wait({ timeoutMs: 2000 })).toMatchObject({ state: 'completed' })
})

it('with its listener frozen without a reset a worker finds jobs within a second, and notices', async () => {
  await using db = await createDatabase()
  await using proxy = await startProxy(db.url)
  await using opened = appOn(db, { ...slow, database: proxy.url() })
  await using producer = appOn(db, { jobs: [note] })
  // From its first word on nothing comes through to the listener; the rest of the worker goes on.
  const frozen = proxy.dropAnswer(/^listen/i, 'hang')
  await opened.app.worker().start()
  await frozen
  await waiting({ db })
  const { id } = await producer.app.enqueue(note, 1)

  expect(await producer.app.job(id).wait({ timeoutMs: 3000 })).toMatchObject({ state: 'completed' })
  // It has asked, got no answer within 5 s, and opened another connection.
  await opened.events.first('wakeup.degraded')
  await opened.events.first('wakeup.restored')
  const next = await producer.app.enqueue(note, 2)
  expect(await producer.app.job(next.id).wait({ timeoutMs: 2000 })).toMatchObject({ state: 'completed' })
  expect(
    await db.sql(
      `select from pg_stat_activity where datname = current_database() and state like 'idle in transaction%'`,
    ),
  ).toEqual([])
})

it('a database restart is survived: work resumes within 10 s and the listener is back', async () => {
  await using server = await startPostgres({ settings: volatileSettings })
  await using db = await createDatabase({ server: server.url() })
  await using opened = appOn(db, { jobs: [note], maxPollMs: 5000 })
  const { app, events } = opened
  await app.worker().start()
  await waiting({ db })

  await server.restart('immediate')

  const upAtMs = performance.now()
  const { id } = await eventually('an enqueue works', async () => await app.enqueue(note, 1))
  expect(await app.job(id).wait({ timeoutMs: 10_000 })).toMatchObject({ state: 'completed' })
  expect(performance.now() - upAtMs).toBeLessThan(10_000)
  await events.first('wakeup.degraded')
  await events.first('wakeup.restored', () => true, { deadlineMs: 12_000 })
  // Bounded tries: growing waits, not a spin.
  expect(events.of('worker.error').length).toBeLessThan(100)
})

it('with no notification at all (pooler mode) start, retry, delay, cancel and rescue work by polling', async () => {
  const flaky = defineJob({
    name: 'flaky',
    input: anything<unknown>(),
    idempotent: true,
    retry: { type: 'fixed', delayMs: 100 },
    handler(ctx) {
      if (ctx.job.attempt === 1) throw new Error('first')
      return 'second'
    },
  })
  await using opened = await openApp({ jobs: [note, flaky], pooler: true, maxPollMs: 500 })
  const { app, db } = opened
  await app.worker().start()
  const now = await app.enqueue(note, 1)
  const later = await app.enqueue(note, 1, { delayMs: 700 })
  const retried = await app.enqueue(flaky, 1)

  for (const { id } of [now, later, retried]) {
    expect(await app.job(id).wait({ timeoutMs: 5000 })).toMatchObject({ state: 'completed' })
  }
  expect(
    await db.sql(`select from pg_stat_activity where datname = current_database() and query ilike 'listen%'`),
  ).toEqual([])
})

it('with no notification at all a job that finds its worker asleep for long starts at the next poll', async () => {
  await using opened = await openApp({ jobs: [note], pooler: true, maxPollMs: 500 })
  const { app } = opened
  await app.worker().start()
  await quiet(opened)

  const { id } = await app.enqueue(note, 1)

  // Its own next look at the queue would come after half a minute.
  expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
})

it('a job that is announced while the claim for another is under way is looked for when that is answered', async () => {
  await using db = await createDatabase()
  await using proxy = await startProxy(db.url)
  await using opened = appOn(db, { ...slow, database: proxy.url() })
  await using producer = appOn(db, { jobs: [note] })
  await asleep(opened)
  const { heard } = await hear(db)
  const claim = proxy.holdAnswer('claim_few_jobs')
  const first = await producer.app.enqueue(note, 1)
  const { release } = await claim

  const second = await producer.app.enqueue(note, 2)
  await eventually('both were announced', () => heard.length === 2)
  // A round trip by the way that the announcement takes.
  await opened.app.job(second.id).get()
  release()

  expect(await producer.app.job(first.id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
  expect(await producer.app.job(second.id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
})

it('a job due in 3 s starts then: not before, and not at the next poll', async () => {
  await using opened = await openApp(slow)
  const { app, db } = opened
  await asleep(opened)

  const { id } = await app.enqueue(note, 1, { delayMs: 3000 })

  await app.job(id).wait({ timeoutMs: 10_000 })
  const [row] = await db.sql<{ late_ms: number }>(
    `select (extract(epoch from o.finished_at - j.run_at) * 1000)::float8 as late_ms
     from holdfast.outcome o join holdfast.job j on j.id = o.job_id`,
  )
  expect(row?.late_ms).toBeGreaterThanOrEqual(0)
  expect(row?.late_ms).toBeLessThan(700)
})

it('1,000 enqueues in one commit announce once for each queue, and wake only workers of that queue', async () => {
  await using db = await createDatabase()
  const queues = { default: {}, other: {} }
  await using one = appOn(db, { jobs: [note, other], queues, maxPollMs: 60_000 })
  await using two = appOn(db, { jobs: [note, other], queues, maxPollMs: 60_000 })
  await one.app.worker({ queues: ['default'] }).start()
  await two.app.worker({ queues: ['other'] }).start()
  await waiting({ db }, 2)
  await quiet({ db }, 2)
  const { listener, heard } = await hear(db)

  await one.app.enqueueMany(Array.from({ length: 1000 }, () => ({ job: note, input: null })))
  await eventually('all are done', async () => (await db.sql('select from holdfast.outcome')).length === 1000)
  await listener.query('select 1')

  expect(heard).toHaveLength(1)
  expect(two.events.of('jobs.claimed')).toEqual([])
})

it('an open transaction with an enqueued job: seen by nobody before the commit, run soon after it, never after a rollback or a kill', async () => {
  await using opened = await openApp(slow)
  const { app, db, events } = opened
  await asleep(opened)
  const [committed, rolledBack, killed] = [await db.connect(), await db.connect(), await db.connect()]
  const ids: string[] = []
  for (const client of [committed, rolledBack, killed]) {
    await client.query('begin')
    ids.push((await app.enqueue(note, 1, { tx: client })).id)
  }
  const [id = ''] = ids
  // A job of its own shows that the worker has looked meanwhile.
  const witness = await app.enqueue(note, 'witness')
  await app.job(witness.id).wait({ timeoutMs: 3000 })
  const startedBefore = events.of('attempt.started').map((e) => e.jobId)

  await rolledBack.query('rollback')
  const [{ pid } = { pid: 0 }] = (await killed.query<{ pid: number }>('select pg_backend_pid() as pid')).rows
  await db.sql('select pg_terminate_backend($1)', [pid])
  await committed.query('commit')

  expect(startedBefore).toEqual([witness.id])
  expect(await app.job(id).wait({ timeoutMs: 2000 })).toMatchObject({ state: 'completed' })
  expect(await db.sql('select id::text from holdfast.job order by id')).toEqual([{ id }, { id: witness.id }])
  expect(new Set(events.of('attempt.started').map((e) => e.jobId))).toEqual(new Set([witness.id, id]))
})

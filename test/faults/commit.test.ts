import { expect, it } from 'vitest'
import { defineJob, type JobContext } from '../../src/index.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { startProxy } from '../support/proxy.ts'
import { appOn, openApp } from './apps.ts'
import { anything, Gate } from './handlers.ts'

function job(handler: (ctx: JobContext) => unknown, more: object = {}) {
  return defineJob({
    name: 'job',
    input: anything<null>(),
    idempotent: true,
    retry: { type: 'fixed', delayMs: 0 },
    ...more,
    handler,
  })
}

/** Writes one row and completes the job. */
function writing(more: object = {}) {
  return job(async (ctx) => {
    await ctx.commit(async (tx) => {
      await tx.query('insert into written values ($1)', [ctx.job.attempt])
      return ctx.job.attempt
    })
  }, more)
}

/** A table whose rows, at commit, do `what`. */
async function tableThatAtCommit(db: TestDatabase, what: string): Promise<void> {
  await db.sql('create table written (n int)')
  await db.sql(
    `create function at_commit() returns trigger language plpgsql as $$ begin ${what}; return null; end $$`,
  )
  await db.sql(
    'create constraint trigger at_commit after insert on written deferrable initially deferred for each row execute function at_commit()',
  )
}

const written = async (db: TestDatabase) =>
  (await db.sql<{ n: number }>('select n from written order by n')).map(({ n }) => n)

/** What the tables say became of a job. A job has one end: never a completion beside a retry. */
async function fateOf(db: TestDatabase, id: string) {
  const [fate] = await db.sql(
    `select (select count(*)::int from holdfast.outcome where job_id = $1) as outcomes,
      (select count(*)::int from holdfast.attempt where job_id = $1) as attempts,
      (select count(*)::int from holdfast.ready where job_id = $1) + (select count(*)::int from holdfast.scheduled where job_id = $1)
        + (select count(*)::int from holdfast.parked where job_id = $1) as waiting`,
    [id],
  )
  return fate
}

it("a lost answer to a job's own commit that committed is found out: completed, once, in its first attempt", async () => {
  const one = writing()
  await using db = await createDatabase()
  await db.sql('create table written (n int)')
  await using proxy = await startProxy(db.url)
  await using opened = appOn(db, { jobs: [one], database: proxy.url() })
  const { id } = await opened.app.enqueue(one, null)
  const hit = proxy.dropAnswer(/^commit/)
  await opened.app.worker().start()
  const { tags } = await hit

  expect(await opened.app.job(id).wait({ timeoutMs: 15_000 })).toMatchObject({ attempts: 1, result: 1 })
  expect(tags).toContain('COMMIT')
  await opened.events.first('job.completed')
  expect(opened.events.of('job.completed')).toHaveLength(1)
  expect(await written(db)).toEqual([1])
  expect(await fateOf(db, id)).toEqual({ outcomes: 1, attempts: 0, waiting: 0 })
})

it("a lost answer to a job's own commit that did not commit is found out: another attempt follows, and writes once", async () => {
  const one = writing()
  await using opened = await openApp({ jobs: [one] })
  const { app, db } = opened
  await db.sql('create table armed ()')
  // The server ends the session in the middle of the first commit.
  await tableThatAtCommit(
    db,
    'if new.n = 1 then perform pg_terminate_backend(pg_backend_pid()); perform pg_sleep(5); end if',
  )
  await app.worker().start()
  const { id } = await app.enqueue(one, null)

  expect(await app.job(id).wait({ timeoutMs: 15_000 })).toMatchObject({ attempts: 2, result: 2 })
  expect(await written(db)).toEqual([2])
  expect(await fateOf(db, id)).toEqual({ outcomes: 1, attempts: 1, waiting: 0 })
})

it('a commit nobody can ask about any more, since its worker stops without a database, is left to the rescue', async () => {
  const one = writing()
  await using db = await createDatabase()
  await db.sql('create table written (n int)')
  await using proxy = await startProxy(db.url)
  await using opened = appOn(db, { jobs: [one], database: proxy.url(), leaseMs: 2000 })
  await using other = appOn(db, { jobs: [one], leaseMs: 2000 })
  const { id } = await other.app.enqueue(one, null)
  const hit = proxy.dropAnswer(/^commit/)
  void hit.then(() => {
    proxy.refuse()
    proxy.cut()
  })
  await opened.app.worker().start()
  await hit
  await opened.app.close()
  await other.app.worker().start()
  await eventually('the lease is gone', async () => (await db.sql('select from holdfast.lease')).length === 0)

  expect(opened.events.of('job.completed')).toEqual([])
  expect(opened.events.of('worker.error').map(({ during }) => during)).toContain("a job's own commit")
  expect(await other.app.job(id).get()).toMatchObject({ state: 'completed', attempts: 1, result: 1 })
  expect(await written(db)).toEqual([1])
  expect(await fateOf(db, id)).toEqual({ outcomes: 1, attempts: 0, waiting: 0 })
})

it('a session that is terminated inside a commit leaves nothing of it, and the next attempt does it once', async () => {
  const gate = new Gate()
  const one = job(async (ctx) => {
    return await ctx.commit(async (tx) => {
      await tx.query('insert into written values ($1)', [ctx.job.attempt])
      if (ctx.job.attempt === 1) await gate.wait()
      return ctx.job.attempt
    })
  })
  await using opened = await openApp({ jobs: [one] })
  const { app, db } = opened
  await db.sql('create table written (n int)')
  await app.worker().start()
  const { id } = await app.enqueue(one, null)
  await eventually('it has written', () => gate.waiting === 1)
  const ended = await db.sql(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and state = 'idle in transaction'`,
  )
  gate.open()

  expect(ended).toHaveLength(1)
  expect(await app.job(id).wait({ timeoutMs: 15_000 })).toMatchObject({ attempts: 2, result: 2 })
  expect(await written(db)).toEqual([2])
})

it('a cancel that comes while the commit is under way finds the job completed; one before it has the commit refused', async () => {
  const one = writing()
  await using opened = await openApp({ jobs: [one] })
  const { app, db } = opened
  await tableThatAtCommit(db, 'perform pg_sleep(0.7)')
  await app.worker().start()
  const { id } = await app.enqueue(one, null)
  await eventually('it commits', async () => {
    const rows = await db.sql(
      `select from pg_stat_activity where datname = current_database() and state = 'active' and query = 'commit'`,
    )
    return rows.length === 1
  })
  const answer = await app.job(id).cancel()

  expect(answer).toMatchObject({ status: 'finished', state: 'completed' })
  expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
  expect(await written(db)).toEqual([1])
  expect(await fateOf(db, id)).toEqual({ outcomes: 1, attempts: 0, waiting: 0 })
})

it('cancel against commit is decided once, 60 times', async () => {
  const one = writing()
  await using opened = await openApp({ jobs: [one], queues: { default: { concurrency: 4 } } })
  const { app, db } = opened
  await db.sql('create table written (n int)')
  await app.worker().start()
  const states: string[] = []
  for (let round = 0; round < 60; round += 1) {
    const { id } = await app.enqueue(one, null)
    await new Promise((resolve) => setTimeout(resolve, Math.random() * 15))
    const [answer, end] = await Promise.all([app.job(id).cancel(), app.job(id).wait({ timeoutMs: 20_000 })])
    states.push(end?.state as string)
    if (answer.status !== 'finished') expect(end?.state).toBe('cancelled')
    else expect(end?.state).toBe('completed')
    expect(await fateOf(db, id)).toEqual({ outcomes: 1, attempts: 0, waiting: 0 })
  }
  expect(await written(db)).toHaveLength(states.filter((state) => state === 'completed').length)
  expect(new Set(states).size).toBe(2)
})

it('a commit under way when the time and the grace of its handler run out decides alone: completed, and no retry', async () => {
  const one = writing({ timeoutMs: 100, abortGraceMs: 100 })
  await using opened = await openApp({ jobs: [one] })
  const { app, db, events } = opened
  await tableThatAtCommit(db, 'perform pg_sleep(1)')
  await app.worker().start()
  const { id } = await app.enqueue(one, null)

  expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed', attempts: 1 })
  await events.first('job.completed')
  await new Promise((resolve) => setTimeout(resolve, 300))
  expect(events.of('job.completed')).toHaveLength(1)
  expect(events.of('attempt.failed')).toEqual([])
  expect(await fateOf(db, id)).toEqual({ outcomes: 1, attempts: 0, waiting: 0 })
  expect(await written(db)).toEqual([1])
})

it('a commit under way when its worker is stopped decides alone: nothing is handed back', async () => {
  const one = writing()
  await using opened = await openApp({ jobs: [one] })
  const { app, db, events } = opened
  await tableThatAtCommit(db, 'perform pg_sleep(1)')
  const worker = app.worker()
  await worker.start()
  const { id } = await app.enqueue(one, null)
  await eventually('it commits', async () => {
    const rows = await db.sql(
      `select from pg_stat_activity where datname = current_database() and state = 'active' and query = 'commit'`,
    )
    return rows.length === 1
  })
  await worker.stop({ shutdownMs: 0 })

  expect(events.of('jobs.handedBack')).toEqual([])
  expect(await fateOf(db, id)).toEqual({ outcomes: 1, attempts: 0, waiting: 0 })
  expect(await db.sql('select from holdfast.lease')).toEqual([])
})

it('a commit that its rescuers find at work is not overtaken: they wait for it', async () => {
  const gate = new Gate()
  const one = job(async (ctx) => {
    return await ctx.commit(async (tx) => {
      await tx.query('insert into written values ($1)', [ctx.job.attempt])
      await gate.wait()
      return ctx.job.attempt
    })
  })
  await using opened = await openApp({ jobs: [one], leaseMs: 3600_000 })
  await using other = appOn(opened.db, { jobs: [one], leaseMs: 1000 })
  const { app, db } = opened
  await db.sql('create table written (n int)')
  await app.worker().start()
  const { id } = await app.enqueue(one, null)
  await eventually('it has written', () => gate.waiting === 1)
  // As if its heartbeat had stopped an hour ago.
  await db.sql(`update holdfast.worker set heartbeat_at = now() - interval '3 hours'`)
  await other.app.worker().start()
  await new Promise((resolve) => setTimeout(resolve, 1500))
  expect(other.events.of('attempt.started')).toEqual([])
  gate.open()

  expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed', attempts: 1 })
  await eventually('the lease is gone', async () => (await db.sql('select from holdfast.lease')).length === 0)
  expect(await written(db)).toEqual([1])
  expect(await fateOf(db, id)).toEqual({ outcomes: 1, attempts: 0, waiting: 0 })
})

it('a fenced transaction of the handler is refused once the job is rescued, with whatever driver', async () => {
  const gate = new Gate()
  const codes: string[] = []
  await using db = await createDatabase()
  await db.sql('create table written (n int)')
  const own = await db.connect()
  const one = job(async (ctx) => {
    if (ctx.job.attempt > 1) return 'second'
    await gate.wait()
    await own.query('begin')
    await own.query('insert into written values (1)')
    await ctx.fence(own).catch(async (error: unknown) => {
      codes.push((error as { code: string }).code)
      await own.query('rollback')
    })
    for (const call of [() => ctx.transaction(() => 1), () => ctx.checkpoint(1), () => ctx.progress(1)])
      await call().catch((error: unknown) => codes.push((error as { code: string }).code))
    return 'first'
  })
  await using opened = appOn(db, { jobs: [one], leaseMs: 3600_000 })
  await using other = appOn(db, { jobs: [one], leaseMs: 1000 })
  await opened.app.worker().start()
  const { id } = await opened.app.enqueue(one, null)
  await eventually('it waits', () => gate.waiting === 1)
  await db.sql(`update holdfast.worker set heartbeat_at = now() - interval '3 hours'`)
  await other.app.worker().start()
  // By either worker; the first one's heartbeat is still taken for old, so its try may be rescued once more.
  const done = await other.app.job(id).wait({ timeoutMs: 15_000 })
  expect(done).toMatchObject({ state: 'completed', result: 'second' })
  expect(done?.attempts).toBeGreaterThan(1)
  gate.open()
  await eventually('it has tried everything', () => codes.length === 4)
  await opened.events.first('write.refused')

  expect(codes).toEqual(['LEASE_LOST', 'LEASE_LOST', 'LEASE_LOST', 'LEASE_LOST'])
  expect(await written(db)).toEqual([])
  expect(await db.sql('select from holdfast.checkpoint')).toEqual([])
})

it('a transaction that an abandoned handler leaves open keeps nobody waiting, and its lease ends after it', async () => {
  await using db = await createDatabase()
  const own = await db.connect()
  const gate = new Gate()
  const stuck = job(
    async (ctx) => {
      if (ctx.job.attempt > 1) return
      await own.query('begin')
      await ctx.fence(own)
      await gate.wait()
    },
    { timeoutMs: 100, abortGraceMs: 0, maxAttempts: 1 },
  )
  const quick = job(() => 'quick', { name: 'quick' })
  await using opened = appOn(db, { jobs: [stuck, quick] })
  const { app, events } = opened
  await app.worker().start()
  const { id } = await app.enqueue(stuck, null)
  await events.first('handler.abandoned')

  expect(await app.job(id).wait({ timeoutMs: 3000 })).toMatchObject({ state: 'discarded' })
  for (let round = 0; round < 5; round += 1) {
    const next = await app.enqueue(quick, null)
    expect(await app.job(next.id).wait({ timeoutMs: 2000 })).toMatchObject({ result: 'quick' })
  }
  await own.query('rollback')
  await eventually(
    'its lease has ended',
    async () => (await db.sql('select from holdfast.lease')).length === 0,
  )
  gate.open()
})

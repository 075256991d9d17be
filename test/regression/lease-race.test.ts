import { expect, it } from 'vitest'
import { createPgDriver } from '../../src/adapters/pg.ts'
import { EventHub } from '../../src/base/events.ts'
import type { Driver } from '../../src/driver/driver.ts'
import { type Database, run, runOne } from '../../src/driver/operation.ts'
import { cancel } from '../../src/jobs/cancel.ts'
import { lockLostLeases } from '../../src/jobs/sql/lock-lost-leases.ts'
import { renewLeases } from '../../src/jobs/sql/renew-leases.ts'
import { requeueLostLeases } from '../../src/jobs/sql/requeue-lost-leases.ts'
import { rescueJobs } from '../../src/worker/maintenance/rescuer.ts'
import { claim, complete, databaseOf, enqueue, failed, register, settle } from '../faults/steps.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'

interface Steps extends AsyncDisposable {
  readonly db: TestDatabase
  readonly driver: Driver
  readonly database: Database
}

async function openSteps(): Promise<Steps> {
  const db = await createDatabase()
  const driver = createPgDriver({ url: db.url, maxConnections: 12 })
  return {
    db,
    driver,
    database: databaseOf(driver),
    async [Symbol.asyncDispose]() {
      await driver.close()
      await db.drop()
    },
  }
}

async function expire({ db }: Steps, workerId: bigint): Promise<void> {
  await db.sql(`update holdfast.worker set heartbeat_at = heartbeat_at - interval '1 hour' where id = $1`, [
    String(workerId),
  ])
}

async function rescue({ driver, database }: Steps): Promise<number> {
  const events = new EventHub()
  let count = 0
  events.on('jobs.rescued', ({ requeued, discarded }) => void (count += requeued + discarded))
  await rescueJobs(driver, database, events)
  return count
}

/** In how many places each job is: one is right. */
async function places({ db }: Steps): Promise<unknown[]> {
  return await db.sql(`select count(*)::int as jobs, n::int from (
      select job.id, (select count(*) from holdfast.ready where job_id = job.id)
        + (select count(*) from holdfast.scheduled where job_id = job.id)
        + (select count(*) from holdfast.outcome where job_id = job.id) as n
      from holdfast.job) x group by n`)
}

it('of a completion and a rescue at the same time exactly one wins, 200 times', async () => {
  await using steps = await openSteps()
  const { database, db } = steps
  let completed = 0
  for (let round = 0; round < 200; round += 1) {
    const worker = await register(database)
    const [id = ''] = await enqueue(database, 1)
    const jobs = await claim(database, worker, 1)
    expect(jobs[0]?.id).toBe(id)
    await expire(steps, worker)

    const [refused, rescued] = await Promise.all([complete(database, worker, jobs), rescue(steps)])

    const won = refused.length === 0
    expect(rescued).toBe(won ? 0 : 1)
    completed += won ? 1 : 0
    const ready = await db.sql('delete from holdfast.ready returning job_id')
    expect(ready).toHaveLength(won ? 0 : 1)
    if (!won) await db.sql('delete from holdfast.job where id = $1', [id])
  }
  expect(await places(steps)).toEqual(completed === 0 ? [] : [{ jobs: completed, n: 1 }])
  expect(await db.sql('select from holdfast.lease')).toEqual([])
})

it('a rescue passes over a lease that a completion holds, and finds nothing to take back afterwards', async () => {
  await using steps = await openSteps()
  const { database, driver } = steps
  const worker = await register(database)
  const [id = ''] = await enqueue(database, 1)
  const jobs = await claim(database, worker, 1)
  await expire(steps, worker)

  let duringCompletion = -1
  await driver.transaction(async (tx) => {
    expect(await complete({ ...database, queryable: tx }, worker, jobs)).toEqual([])
    duringCompletion = await rescue(steps)
  })

  expect(duringCompletion).toBe(0)
  expect(await rescue(steps)).toBe(0)
  expect(
    await steps.db.sql('select state::text, attempts::int from holdfast.outcome where job_id = $1', [id]),
  ).toEqual([{ state: 'completed', attempts: 1 }])
  expect(await places(steps)).toEqual([{ jobs: 1, n: 1 }])
})

it('a rescue that locked its lease before a completion committed part of it requeues the rest only', async () => {
  await using steps = await openSteps()
  const { database } = steps
  const worker = await register(database)
  await enqueue(database, 3)
  const jobs = await claim(database, worker, 3)
  await complete(database, worker, jobs.slice(0, 1))
  await settle(database, worker, jobs.slice(1, 2), failed)
  await expire(steps, worker)

  expect(await rescue(steps)).toBe(1)

  expect(await places(steps)).toEqual([{ jobs: 3, n: 1 }])
  expect(await steps.db.sql('select job_id::text as id from holdfast.ready')).toEqual([{ id: jobs[2]?.id }])
})

it('a completion that waits for a rescue is refused when that commits', async () => {
  await using steps = await openSteps()
  const { database, driver, db } = steps
  const worker = await register(database)
  const [id = ''] = await enqueue(database, 1)
  const jobs = await claim(database, worker, 1)
  await expire(steps, worker)

  let completing: Promise<string[]> | undefined
  await driver.transaction(async (tx) => {
    const inside = { ...database, queryable: tx }
    const { tokens, workerIds } = await runOne(inside, lockLostLeases, { limit: 25 })
    completing = complete(database, worker, jobs)
    await eventually('the completion waits', async () => {
      const [row] = await db.sql(
        `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%settle_completed%'`,
      )
      return row?.['n']
    })
    await runOne(inside, requeueLostLeases, {
      tokens: tokens as string[],
      workerIds: workerIds as string[],
      backoffMs: 1000n,
    })
  })

  expect(await completing).toEqual([id])
  expect(await db.sql('select from holdfast.outcome')).toEqual([])
  expect(await db.sql('select attempts::int from holdfast.ready where job_id = $1', [id])).toEqual([
    { attempts: 1 },
  ])
})

it('a heartbeat that commits between the look of a rescuer and its lock keeps the job', async () => {
  await using steps = await openSteps()
  const { database, driver, db } = steps
  const worker = await register(database)
  await enqueue(database, 1)
  const jobs = await claim(database, worker, 1)
  await expire(steps, worker)
  // The statement itself, but that it sleeps between the row it has seen and the lock on it.
  const text = lockLostLeases
    .statement('holdfast')
    .text.replace('where heartbeat_at', 'where pg_sleep(0.7) is not null and heartbeat_at')
  expect(text).toContain('pg_sleep')
  const looking = driver.query(text, ['25'])
  await eventually(
    'it looks',
    async () =>
      (
        await db.sql(
          `select from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'`,
        )
      ).length,
  )
  await run(database, renewLeases, { workerId: worker })

  expect(await looking).toEqual([{ worker_ids: null, tokens: null }])
  expect(await rescue(steps)).toBe(0)
  expect(await complete(database, worker, jobs)).toEqual([])
})

it('several rescuers share the work: each job is taken back once', async () => {
  await using steps = await openSteps()
  const { database } = steps
  await enqueue(database, 300)
  const workers = await Promise.all(Array.from({ length: 60 }, async () => await register(database)))
  for (const worker of workers) await claim(database, worker, 5)
  for (const worker of workers) await expire(steps, worker)

  const counts = await Promise.all(Array.from({ length: 6 }, async () => await rescue(steps)))

  const rest = await rescue(steps)
  expect(counts.reduce((sum, n) => sum + n, rest)).toBe(300)
  expect(await places(steps)).toEqual([{ jobs: 300, n: 1 }])
  expect(await steps.db.sql('select distinct attempts::int from holdfast.ready')).toEqual([{ attempts: 1 }])
  expect(await steps.db.sql('select from holdfast.worker')).toEqual([])
})

it('10,000 expired leases are taken back in transactions of at most 25 leases, within 30 s', async () => {
  await using steps = await openSteps()
  const { database, db, driver } = steps
  await enqueue(database, 10_000)
  // By SQL, since 10,000 claims are not what is measured.
  await db.sql(`with w as (insert into holdfast.worker (heartbeat_at, lease_ms, name, app, version, queues, jobs)
      select now() - interval '1 hour', 1000, 'x', 'x', 'x', '[]', '[]' from generate_series(1, 100) returning id),
    taken as (delete from holdfast.ready returning job_id, seq)
    insert into holdfast.lease (worker_id, job_ids, seqs)
    select (select min(id) from w) + row_number() over () % 100, array[job_id], array[seq] from taken`)
  let transactions = 0
  const counting = new Proxy(driver, {
    get(target, key) {
      if (key === 'transaction') transactions += 1
      const value: unknown = Reflect.get(target, key)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })

  const startMs = performance.now()
  await rescueJobs(counting, database, new EventHub())

  expect(performance.now() - startMs).toBeLessThan(30_000)
  expect(transactions).toBeGreaterThanOrEqual(400)
  expect(await places(steps)).toEqual([{ jobs: 10_000, n: 1 }])
  expect(await db.sql('select from holdfast.lease')).toEqual([])
})

it('cancel against completion is decided once, 100 times, and a cancelled job is never retried', async () => {
  await using steps = await openSteps()
  const { database, driver, db } = steps
  const worker = await register(database)
  for (let round = 0; round < 100; round += 1) {
    const [id = ''] = await enqueue(database, 1)
    const jobs = await claim(database, worker, 1)
    const fails = round % 2 === 1

    const [answer] = await Promise.all([
      cancel(id, undefined, { driver, database }),
      fails ? settle(database, worker, jobs, failed) : complete(database, worker, jobs),
    ])

    const [end] = await db.sql<{ state: string }>(
      'select state::text from holdfast.outcome where job_id = $1',
      [id],
    )
    // A failure that came first leaves a retry, which the cancel then ends.
    const ended = answer.status === 'finished' ? 'completed' : 'cancelled'
    expect({ round, status: answer.status, state: end?.state }).toEqual({
      round,
      status: answer.status,
      state: ended,
    })
    expect(!fails || ended === 'cancelled').toBe(true)
  }
  expect(await places(steps)).toEqual([{ jobs: 100, n: 1 }])
  expect(await db.sql('select from holdfast.lease')).toEqual([])
})

it('20 jobs and 20 claimers at once: every job has one owner, attempt 1 and a deadline', async () => {
  await using steps = await openSteps()
  const { database, db } = steps
  await enqueue(database, 20)
  const workers = await Promise.all(Array.from({ length: 20 }, async () => await register(database)))

  const claims = await Promise.all(workers.map(async (worker) => await claim(database, worker, 3)))

  const rest = await claim(database, workers[0] ?? 0n, 20)
  const ids = [...claims.flat(), ...rest].map((job) => job.id)
  expect(new Set(ids).size).toBe(20)
  expect(ids).toHaveLength(20)
  expect([...claims.flat(), ...rest].every((job) => job.attempt === 1)).toBe(true)
  expect(
    await db.sql(`select count(*)::int as held from holdfast.jobs j join holdfast.worker w on w.id = j.worker_id
      where j.state = 'executing' and w.heartbeat_at + w.lease_ms * interval '1 millisecond' > now()`),
  ).toEqual([{ held: 20 }])
})

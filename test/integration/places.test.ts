import { expect, it } from 'vitest'
import { createPgDriver } from '../../src/adapters/pg.ts'
import { moveJob } from '../../src/admin/sql/move-job.ts'
import { moveQueueJobs } from '../../src/admin/sql/move-queue-jobs.ts'
import { channelOf } from '../../src/base/channel.ts'
import { EventHub } from '../../src/base/events.ts'
import type { Driver } from '../../src/driver/driver.ts'
import { type Database, run, runOne } from '../../src/driver/operation.ts'
import { type Places, readPlaces } from '../../src/jobs/sql/came-back.ts'
import { releaseUnknownLeases } from '../../src/jobs/sql/release-unknown-leases.ts'
import { rescueJobs } from '../../src/worker/maintenance/rescuer.ts'
import { claim, databaseOf, enqueue, failed, handedBack, register, settle } from '../faults/steps.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'

/** A job that comes back to its old place may lie behind the marks of workers, who are told of it. */

interface Stage extends AsyncDisposable {
  readonly db: TestDatabase
  readonly driver: Driver
  readonly database: Database
  /** Where jobs came back to since the last call. */
  readonly told: () => Promise<readonly Places[]>
}

async function openStage(): Promise<Stage> {
  const db = await createDatabase()
  const driver = createPgDriver({ url: db.url, maxConnections: 4 })
  const listener = await db.connect()
  let heard: Places[] = []
  listener.on('notification', ({ payload }) => {
    const places = readPlaces(payload ?? '')
    if (places !== undefined) heard.push(places)
  })
  await listener.query(`listen ${channelOf('holdfast')}`)
  return {
    db,
    driver,
    database: databaseOf(driver),
    async told() {
      // What was committed before this answer was sent to us before it.
      await listener.query('select 1')
      const all = heard.sort((a, b) => Number(a.first - b.first))
      heard = []
      return all
    },
    async [Symbol.asyncDispose]() {
      await driver.close()
      await db.drop()
    },
  }
}

/** As `holdfast.enqueue` and its like name a queue in their notifications. */
async function signalOf(db: TestDatabase, queue: string): Promise<string> {
  const [row] = await db.sql<{ signal: string }>('select to_hex(hashtextextended($1, 0)) as signal', [queue])
  return row?.signal as string
}

const stretch = (signal: string, priority: number, ids: readonly string[]) => ({
  signal,
  priority,
  first: BigInt(ids.at(0) as string),
  last: BigInt(ids.at(-1) as string),
})

it('workers are told where jobs came back to that were handed back, and not of those that were done or wait', async () => {
  await using stage = await openStage()
  const { database, db, told } = stage
  const worker = await register(database)
  const urgent = await enqueue(database, 3)
  const others = await enqueue(database, 2, { priority: 7 })
  const jobs = await claim(database, worker, 5)
  expect(await told()).toEqual([])

  expect(await settle(database, worker, jobs.slice(0, 1), failed)).toEqual([])
  expect(await told()).toEqual([])

  expect(await settle(database, worker, jobs.slice(1), handedBack)).toEqual([])
  const signal = await signalOf(db, 'default')
  expect(await told()).toEqual([stretch(signal, 0, urgent.slice(1)), stretch(signal, 7, others)])
})

it('workers are told where jobs came back to whose worker is lost', async () => {
  await using stage = await openStage()
  const { database, db, driver, told } = stage
  const ids = await enqueue(database, 4)
  const worker = await register(database)
  await claim(database, worker, 4)
  await db.sql(`update holdfast.worker set heartbeat_at = heartbeat_at - interval '1 hour'`)

  await rescueJobs(driver, database, new EventHub())

  expect(await told()).toEqual([stretch(await signalOf(db, 'default'), 0, ids)])
})

it('workers are told where jobs came back to of a claim whose answer was lost', async () => {
  await using stage = await openStage()
  const { database, db, told } = stage
  const ids = await enqueue(database, 4)
  const worker = await register(database)
  await claim(database, worker, 4)

  expect(await runOne(database, releaseUnknownLeases, { workerId: worker, known: [] })).toMatchObject({
    released: 4,
  })

  expect(await told()).toEqual([stretch(await signalOf(db, 'default'), 0, ids)])
})

it('workers are told where jobs came to that were moved from another queue', async () => {
  await using stage = await openStage()
  const { database, db, told } = stage
  const [first = '', ...others] = await enqueue(database, 4)

  await run(database, moveJob, { jobId: BigInt(first), queue: 'mail' })
  const signal = await signalOf(db, 'mail')
  expect(await told()).toEqual([stretch(signal, 0, [first])])

  await runOne(database, moveQueueJobs, { fromQueue: 'default', queue: 'mail', limit: 100 })
  expect(await told()).toEqual([stretch(signal, 0, others)])
  await runOne(database, moveQueueJobs, { fromQueue: 'default', queue: 'mail', limit: 100 })
  expect(await told()).toEqual([])
})

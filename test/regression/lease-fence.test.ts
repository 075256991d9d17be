import { expect, it } from 'vitest'
import { EventHub } from '../../src/base/events.ts'
import { run } from '../../src/driver/operation.ts'
import { releaseUnknownLeases } from '../../src/jobs/sql/release-unknown-leases.ts'
import { renewLeases } from '../../src/jobs/sql/renew-leases.ts'
import type { ClaimedJob } from '../../src/worker/claimed-job.ts'
import { rescueJobs } from '../../src/worker/maintenance/rescuer.ts'
import {
  claim,
  complete,
  databaseOf,
  enqueue,
  failed,
  handedBack,
  register,
  settle,
} from '../faults/steps.ts'
import { describeEachBackend } from '../support/backends.ts'

describeEachBackend('the fence of a lease', (suite) => {
  async function openSteps() {
    const backend = await suite.open()
    const database = databaseOf(backend.driver)
    const events = new EventHub()
    return {
      ...backend,
      database,
      sql: backend.sql.bind(backend),
      rescue: async () => await rescueJobs(backend.driver, database, events),
      /** Makes the worker look as if it had not been heard of for an hour. */
      expire: async (workerId: bigint) =>
        void (await backend.sql(
          `update holdfast.worker set heartbeat_at = heartbeat_at - interval '1 hour' where id = $1`,
          [String(workerId)],
        )),
      state: async (id: string) => {
        const [job] = await backend.sql<{ state: string; attempts: number }>(
          'select state, attempts::int from holdfast.jobs where id = $1',
          [id],
        )
        return job
      },
      [Symbol.asyncDispose]: async () => await backend[Symbol.asyncDispose](),
    }
  }

  it('refuses every write of a worker whose job was rescued, and changes nothing', async () => {
    await using steps = await openSteps()
    const { database } = steps
    const [first, second] = [await register(database), await register(database)]
    const [id = ''] = await enqueue(database, 1)
    const stale = await claim(database, first, 1)
    await steps.expire(first)
    await steps.rescue()
    const [again] = await claim(database, second, 1)

    const refused = [
      await complete(database, first, stale),
      await settle(database, first, stale, failed),
      await settle(database, first, stale, handedBack),
      await settle(database, first, stale, { to: 'scheduled', ended: 'snoozed', delay: 0 }),
      await settle(database, first, stale, { to: 'discarded', reason: 'no' }),
      await settle(database, first, stale, { to: 'cancelled', reason: 'no' }),
      await settle(database, first, stale, { to: 'parked', ended: 'parked', reason: 'no' }),
    ]
    const renewed = await run(database, renewLeases, { workerId: first })

    expect(refused).toEqual(Array(7).fill([id]))
    expect(renewed).toEqual([])
    expect(await steps.state(id)).toEqual({ state: 'executing', attempts: 2 })
    expect(again?.attempt).toBe(2)
    expect(await complete(database, second, again ? [again] : [])).toEqual([])
  })

  it('refuses the first claim of a worker that claimed the same job again', async () => {
    await using steps = await openSteps()
    const { database } = steps
    const worker = await register(database)
    const [id = ''] = await enqueue(database, 1)
    const first = await claim(database, worker, 1)
    await settle(database, worker, first, handedBack)
    const second = await claim(database, worker, 1)

    expect(await complete(database, worker, first)).toEqual([id])
    expect(await settle(database, worker, first, failed)).toEqual([id])
    expect(await complete(database, worker, second)).toEqual([])
    expect(second[0]?.attempt).toBe(1)
  })

  it('refuses an id that is not in the lease, and records the others', async () => {
    await using steps = await openSteps()
    const { database } = steps
    const worker = await register(database)
    const ids = await enqueue(database, 3)
    const [foreign = ''] = await enqueue(database, 1)
    const mine = await claim(database, worker, 3)
    const { lease } = mine[0] as ClaimedJob

    const refused = await complete(database, worker, [...mine.slice(0, 2), { id: foreign, lease, place: 3 }])
    const alsoRefused = await settle(database, worker, [{ id: foreign, lease }, ...mine.slice(2)], failed)

    expect([refused, alsoRefused]).toEqual([[foreign], [foreign]])
    expect(await steps.state(foreign)).toEqual({ state: 'available', attempts: 0 })
    expect(await Promise.all(ids.map(async (id) => (await steps.state(id))?.state))).toEqual([
      'completed',
      'completed',
      'retryable',
    ])
  })

  it("refuses another worker's token", async () => {
    await using steps = await openSteps()
    const { database } = steps
    const [owner, thief] = [await register(database), await register(database)]
    const [id = ''] = await enqueue(database, 1)
    const jobs = await claim(database, owner, 1)

    expect(await complete(database, thief, jobs)).toEqual([id])
    expect(await settle(database, thief, jobs, failed)).toEqual([id])
    expect(await steps.state(id)).toEqual({ state: 'executing', attempts: 1 })
  })

  it('takes an id that comes twice in one settlement once, and records the others', async () => {
    await using steps = await openSteps()
    const { database } = steps
    const worker = await register(database)
    const [once = '', twice = ''] = await enqueue(database, 2)
    const [a, b] = await claim(database, worker, 2)
    if (!a || !b) throw new Error('nothing was claimed')

    await settle(database, worker, [b, a, b], failed)

    expect(await steps.state(once)).toEqual({ state: 'retryable', attempts: 1 })
    expect(await steps.state(twice)).toEqual({ state: 'retryable', attempts: 1 })
    expect(await steps.sql('select from holdfast.lease')).toEqual([])
  })

  it('records the others of a batch when the row of one job is gone, and keeps no lease', async () => {
    await using steps = await openSteps()
    const { database } = steps
    const worker = await register(database)
    const ids = await enqueue(database, 5)
    const jobs = await claim(database, worker, 5)
    await steps.sql('delete from holdfast.job where id = $1', [ids[2]])

    await complete(database, worker, jobs)

    const states = await Promise.all(ids.map(async (id) => (await steps.state(id))?.state))
    expect(states).toEqual(['completed', 'completed', undefined, 'completed', 'completed'])
    expect(await steps.sql('select from holdfast.lease')).toEqual([])
  })

  it('reports a failed job whose row is gone, and keeps no lease for it', async () => {
    await using steps = await openSteps()
    const { database } = steps
    const worker = await register(database)
    const ids = await enqueue(database, 2)
    const jobs = await claim(database, worker, 2)
    await steps.sql('delete from holdfast.job where id = $1', [ids[0]])

    const refused = await settle(database, worker, jobs, failed)

    expect(refused).toEqual([ids[0]])
    expect(await steps.state(ids[1] ?? '')).toEqual({ state: 'retryable', attempts: 1 })
    expect(await steps.sql('select from holdfast.lease')).toEqual([])
  })

  it('hands out growing tokens, whatever ended the claims before', async () => {
    await using steps = await openSteps()
    const { database } = steps
    const tokens: bigint[] = []
    await enqueue(database, 1)
    for (let round = 0; round < 30; round += 1) {
      const worker = await register(database)
      const jobs = await claim(database, worker, 1)
      tokens.push(jobs[0]?.lease.token ?? -1n)
      if (round % 3 === 0) await settle(database, worker, jobs, handedBack)
      if (round % 3 === 1) await settle(database, worker, jobs, { ...handedBack, ended: 'interrupted' })
      if (round % 3 === 2) {
        await run(database, releaseUnknownLeases, { workerId: worker, known: [] })
      }
    }

    expect(tokens).toHaveLength(30)
    for (let i = 1; i < tokens.length; i += 1) expect(tokens[i]).toBeGreaterThan(tokens[i - 1] ?? 0n)
  })

  it('gives a job handed back its place and its attempt again', async () => {
    await using steps = await openSteps()
    const { database } = steps
    const worker = await register(database)
    const ids = await enqueue(database, 3)
    const [urgent = ''] = await enqueue(database, 1, { priority: 0 })
    const taken = await claim(database, worker, 2)
    await settle(database, worker, taken, handedBack)

    const order = await claim(database, worker, 4)

    expect(order.map((job) => job.id)).toEqual([...ids, urgent])
    expect(order.map((job) => job.attempt)).toEqual([1, 1, 1, 1])
  })

  it('gives back what a lost answer hid, uncounted and in its place, and never what is known', async () => {
    await using steps = await openSteps()
    const { database } = steps
    const worker = await register(database)
    const ids = await enqueue(database, 4)
    const known = await claim(database, worker, 1)
    await claim(database, worker, 2)

    const [answer] = await run(database, releaseUnknownLeases, {
      workerId: worker,
      known: known.map((job) => job.lease.token),
    })

    expect(answer).toEqual({ released: 2 })
    const order = await claim(database, worker, 4)
    expect(order.map((job) => [job.id, job.attempt])).toEqual(ids.slice(1).map((id) => [id, 1]))
    expect(await complete(database, worker, known)).toEqual([])
  })

  it('keeps priority, place and unique key over rescue, retry and hand-back', async () => {
    await using steps = await openSteps()
    const { database } = steps
    const [dead, alive] = [await register(database), await register(database)]
    const low = await enqueue(database, 1, { priority: 5 })
    const high = await enqueue(database, 2, { priority: 1 })
    await steps.sql(
      `insert into holdfast.unique_key (job_id, tenant, name, key) values ($1, '', 'step', 'k')`,
      [low[0]],
    )
    await claim(database, dead, 3)
    await steps.expire(dead)
    await steps.rescue()

    const order = await claim(database, alive, 3)

    expect(order.map((job) => [job.id, job.attempt])).toEqual([...high, ...low].map((id) => [id, 2]))
    expect(await steps.sql('select job_id::text as id from holdfast.unique_key')).toEqual([{ id: low[0] }])
  })

  it('counts an attempt for a lost worker, says so, and discards on the last', async () => {
    await using steps = await openSteps()
    const { database } = steps
    const [id = ''] = await enqueue(database, 1, { maxAttempts: 2 })
    for (let life = 0; life < 2; life += 1) {
      const worker = await register(database)
      await claim(database, worker, 1)
      await steps.expire(worker)
      await steps.rescue()
    }

    const [job] = await steps.sql('select state, attempts::int, reason from holdfast.jobs where id = $1', [
      id,
    ])
    expect(job).toEqual({ state: 'discarded', attempts: 2, reason: 'worker lost on the last attempt' })
    expect(await steps.sql('select ended::text, attempt::int from holdfast.attempt')).toEqual([
      { ended: 'worker-lost', attempt: 1 },
    ])
    expect(await steps.rescue()).toEqual([])
    expect(await claim(database, await register(database), 1)).toEqual([])
  })

  it('never takes a job on its last attempt for a buffer', async () => {
    await using steps = await openSteps()
    const { database } = steps
    const worker = await register(database)
    await enqueue(database, 3, { maxAttempts: 1 })
    await enqueue(database, 5)

    const jobs = await claim(database, worker, 8, { free: 2 })

    expect(jobs.filter((job) => job.maxAttempts === 1)).toHaveLength(2)
    // Careful ones come first, so that they are the ones that find the free slots.
    expect(jobs.slice(0, 2).map((job) => job.maxAttempts)).toEqual([1, 1])
    expect(await claim(database, worker, 8, { free: 0 })).toEqual([])
  })

  it('takes jobs that have cost two workers their life one at a time', async () => {
    await using steps = await openSteps()
    const { database } = steps
    const worker = await register(database)
    const ids = await enqueue(database, 3)
    await steps.sql('update holdfast.ready set crashes = 2, attempts = 2, care = 2')
    const [plain = ''] = await enqueue(database, 1)

    const first = await claim(database, worker, 10)
    const while_ = await claim(database, worker, 10, { suspects: false })
    await complete(database, worker, first)
    const second = await claim(database, worker, 10)

    expect(first.map((job) => job.id)).toEqual([ids[0], plain])
    expect(while_).toEqual([])
    expect(second.map((job) => job.id)).toEqual([ids[1]])
  })

  it('takes back a lease whose worker has no row any more', async () => {
    await using steps = await openSteps()
    const { database } = steps
    const worker = await register(database)
    const [id = ''] = await enqueue(database, 1)
    await claim(database, worker, 1)
    await steps.sql('delete from holdfast.worker where id = $1', [String(worker)])

    await steps.rescue()

    expect(await steps.state(id)).toEqual({ state: 'available', attempts: 1 })
  })

  it('declares a worker dead with all its leases, or not at all', async () => {
    await using steps = await openSteps()
    const { database } = steps
    const worker = await register(database)
    await enqueue(database, 30)
    for (let i = 0; i < 30; i += 1) await claim(database, worker, 1)
    await steps.expire(worker)

    // The rescuer died after its first transaction of 25 leases.
    const interrupted = new Error('the rescuer died')
    const events = new EventHub()
    let transactions = 0
    const dying = {
      ...steps.driver,
      transaction: async (fn: Parameters<typeof steps.driver.transaction>[0]) => {
        transactions += 1
        if (transactions > 1) throw interrupted
        return await steps.driver.transaction(fn)
      },
    } as typeof steps.driver
    await expect(rescueJobs(dying, database, events)).rejects.toBe(interrupted)

    // Renewing now must not make it believe that it still has what was taken.
    expect(await run(database, renewLeases, { workerId: worker })).toEqual([])
    await steps.rescue()
    expect(await steps.sql('select from holdfast.lease')).toEqual([])
    expect(await steps.sql('select from holdfast.ready')).toHaveLength(30)
  })
})

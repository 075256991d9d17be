import assert from 'node:assert/strict'
import pg from 'pg'
import type { Driver, Queryable } from '../../src/driver/driver.ts'
import type { Database } from '../../src/driver/operation.ts'
import type { ClaimedBatch } from '../../src/jobs/sql/claim-jobs.ts'
import type { Library } from './library.ts'

/**
 * Small scenes, each for one condition of one statement by which workers write. A scene throws if the promise is
 * broken; `controls.ts` takes the condition out and requires that it does.
 */
export interface Scene {
  readonly promise: string
  readonly play: (stage: SceneStage) => Promise<void>
}

type Claim = { readonly token: bigint; readonly ids: readonly string[] }

/** A statement that has to wait for a lock would wait for ever in these scenes. */
const BLOCKED_MS = 3000

/** The library over an empty migrated database of its own. */
export class SceneStage {
  readonly library: Library
  readonly driver: Driver
  readonly db: Database
  readonly #pool: pg.Pool

  constructor(library: Library, url: string) {
    this.library = library
    this.driver = library.pg.createPgDriver({ url })
    this.db = { queryable: this.driver, schema: 'holdfast', prepare: true }
    this.#pool = new pg.Pool({ connectionString: url, max: 2 })
    // The database is dropped while a client still says its goodbye.
    this.#pool.on('error', () => {})
  }

  async close(): Promise<void> {
    await this.driver.close()
    await this.#pool.end()
  }

  async sql(text: string, values: readonly unknown[] = []): Promise<Record<string, unknown>[]> {
    return (await this.#pool.query<Record<string, unknown>>(text, [...values])).rows
  }

  on(queryable: Queryable): Database {
    return { ...this.db, queryable }
  }

  async enqueue(count: number, more: Readonly<Record<string, unknown>> = {}): Promise<readonly string[]> {
    const items = Array.from({ length: count }, () => ({ n: 'scene', q: 'main', p: 0, m: 5, i: {}, ...more }))
    const [row] = await this.sql('select holdfast.enqueue_jobs($1) as ids', [JSON.stringify(items)])
    return JSON.parse(String(row?.['ids'])) as string[]
  }

  async worker(leaseMs = 60_000): Promise<bigint> {
    const { runOne } = this.library.operation
    const { id } = await runOne(this.db, this.library.registerWorker.registerWorker, {
      name: 'scene',
      app: 'scene',
      version: '0',
      leaseMs,
      queues: '[]',
      jobs: '[]',
      queueNames: ['main'],
    })
    return id
  }

  claimRequest(workerId: bigint, limit: number) {
    return {
      workerId,
      queues: ['main'],
      wanted: [limit],
      free: [limit],
      classQueues: ['main'],
      classPriorities: [0],
      lastPriorities: [0],
      after: [0n],
      upto: [9_000_000_000_000_000_000n],
      suspects: true,
    }
  }

  async claim(workerId: bigint, limit: number, db = this.db): Promise<Claim> {
    const { claimJobs } = this.library.claimJobs
    return claimOf((await this.library.operation.run(db, claimJobs, this.claimRequest(workerId, limit)))[0])
  }

  async claimFew(workerId: bigint, limit: number, db = this.db): Promise<readonly string[]> {
    const { claimFewJobs } = this.library.claimFewJobs
    const rows = await this.library.operation.run(db, claimFewJobs, { workerId, queue: 'main', limit })
    return rows.flatMap(({ jobId }) => jobId ?? [])
  }

  /** Records `jobIds` as completed under `token`; gives the ids that were refused. */
  async complete(
    workerId: bigint,
    token: bigint,
    jobIds: readonly string[],
    options: { readonly db?: Database; readonly places?: readonly number[] } = {},
  ): Promise<readonly string[]> {
    const { settleCompleted } = this.library.settleCompleted
    const { db = this.db, places } = options
    const request = settleRequest(workerId, token, jobIds, places)
    return idsOf((await this.library.operation.runOne(db, settleCompleted, request)).refused)
  }

  async settle(
    workerId: bigint,
    token: bigint,
    jobIds: readonly string[],
    item: { readonly to: string; readonly ended: string; readonly delay?: number },
  ): Promise<readonly string[]> {
    const { settleAttempts } = this.library.settleAttempts
    const items = jobIds.map((job) => ({ token: String(token), job, ms: 1, reason: 'scene', ...item }))
    const request = { workerId, tokens: [token], items: JSON.stringify(items), keep: 20 }
    return idsOf((await this.library.operation.runOne(this.db, settleAttempts, request)).refused)
  }

  /** What any worker does when leases have run out; gives the ids of the jobs that went back. */
  async rescue(): Promise<readonly string[]> {
    const { operation, lockLostLeases, requeueLostLeases } = this.library
    return await this.driver.transaction(async (tx) => {
      const db = this.on(tx)
      const { tokens, workerIds } = await operation.runOne(db, lockLostLeases.lockLostLeases, { limit: 25 })
      const request = { tokens: idsOf(tokens), workerIds: idsOf(workerIds), backoffMs: 2000n }
      const { requeued } = await operation.runOne(db, requeueLostLeases.requeueLostLeases, request)
      return ((requeued ?? []) as readonly (readonly string[])[]).map(([id]) => String(id))
    })
  }

  /** The worker is not heard of any more. */
  async silence(workerId: bigint): Promise<void> {
    await this.sql(`update holdfast.worker set heartbeat_at = now() - interval '1 hour' where id = $1`, [
      workerId,
    ])
  }

  async state(jobId: string): Promise<string> {
    const rows = await this.sql('select state from holdfast.jobs where id = $1', [jobId])
    return rows.map(({ state }) => String(state)).join('+')
  }

  /** Keeps a transaction open while `during` runs; commits it when that is done. */
  async whileOpen(begin: (db: Database) => Promise<unknown>, during: () => Promise<void>): Promise<void> {
    await this.driver.transaction(async (tx) => {
      await begin(this.on(tx))
      await during()
    })
  }

  /** Resolves when a session of this database waits for a lock; rejects if none does for a while. */
  async waiting(): Promise<void> {
    for (let looks = 0; looks < 150; looks += 1) {
      const rows = await this.sql(
        `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      if (rows.length > 0) return
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
    throw new Error('nobody waited for a lock')
  }

  /** A worker that gave back a lease as unknown to it, and whose jobs another has now. */
  async givenBack() {
    const jobs = await this.enqueue(2)
    const worker = await this.worker()
    const { token } = await this.claim(worker, 2)
    const { operation, releaseUnknownLeases } = this.library
    await operation.runOne(this.db, releaseUnknownLeases.releaseUnknownLeases, {
      workerId: worker,
      known: [],
    })
    assert.equal((await this.claim(await this.worker(), 2)).ids.length, 2)
    return { jobs, worker, token }
  }

  /** A worker that was declared dead, its two jobs, and the claim of the worker that has them now. */
  async takenOver() {
    const jobs = await this.enqueue(2)
    const dead = await this.worker()
    const old = await this.claim(dead, 2)
    await this.silence(dead)
    assert.deepEqual([...(await this.rescue())].sort(), [...jobs].sort())
    const heir = await this.worker()
    const now = await this.claim(heir, 2)
    assert.equal(now.ids.length, 2)
    return { jobs, dead, old, heir, now }
  }
}

function claimOf(batch: ClaimedBatch | undefined): Claim {
  return { token: batch?.token ?? 0n, ids: idsOf(batch?.ids) }
}

function idsOf(json: unknown): readonly string[] {
  return (json ?? []) as readonly string[]
}

/** `places` of the jobs in their lease; by default, as they come. */
function settleRequest(
  workerId: bigint,
  token: bigint,
  jobIds: readonly string[],
  places: readonly number[] = jobIds.map((_, i) => i + 1),
) {
  return {
    workerId,
    tokens: [token],
    jobIds,
    leases: jobIds.map(() => 1),
    places,
    durationsMs: jobIds.map(() => 1),
    results: [],
    keyedIds: [],
  }
}

async function withinMs<T>(ms: number, what: string, answer: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} had to wait`)), ms)
  })
  try {
    return await Promise.race([answer, late])
  } finally {
    clearTimeout(timer)
  }
}

export const scenes = {
  staleCompletion: {
    promise: 'settle_completed refuses a worker whose lease was rescued',
    play: async (stage) => {
      const { jobs, dead, old } = await stage.takenOver()
      assert.deepEqual([...(await stage.complete(dead, old.token, jobs))].sort(), [...jobs].sort())
      for (const job of jobs) assert.equal(await stage.state(job), 'executing')
    },
  },
  staleCompletionWithClaim: {
    promise: 'settle_and_claim refuses a worker whose lease was rescued, and claims all the same',
    play: async (stage) => {
      const { jobs, dead, old } = await stage.takenOver()
      const [other] = await stage.enqueue(1)
      const { operation, settleCompleted } = stage.library
      const request = { ...settleRequest(dead, old.token, jobs), ...stage.claimRequest(dead, 5) }
      const answer = await operation.runOne(stage.db, settleCompleted.settleAndClaim, request)
      assert.deepEqual([...idsOf(answer.refused)].sort(), [...jobs].sort())
      assert.deepEqual(idsOf(answer.ids), [other])
      for (const job of jobs) assert.equal(await stage.state(job), 'executing')
    },
  },
  staleFailure: {
    promise: 'settle_attempts refuses a worker whose lease was rescued',
    play: async (stage) => {
      const { jobs, dead, old } = await stage.takenOver()
      const refused = await stage.settle(dead, old.token, jobs, {
        to: 'scheduled',
        ended: 'failed',
        delay: 1000,
      })
      assert.deepEqual([...refused].sort(), [...jobs].sort())
      for (const job of jobs) assert.equal(await stage.state(job), 'executing')
    },
  },
  releasedCompletion: {
    promise: 'settle_completed refuses a lease that was given back, which leaves no row but its absence',
    play: async (stage) => {
      const { jobs, worker, token } = await stage.givenBack()
      assert.deepEqual([...(await stage.complete(worker, token, jobs))].sort(), [...jobs].sort())
      for (const job of jobs) assert.equal(await stage.state(job), 'executing')
    },
  },
  releasedFailure: {
    promise: 'settle_attempts refuses a lease that was given back',
    play: async (stage) => {
      const { jobs, worker, token } = await stage.givenBack()
      const refused = await stage.settle(worker, token, jobs, {
        to: 'scheduled',
        ended: 'failed',
        delay: 1000,
      })
      assert.deepEqual([...refused].sort(), [...jobs].sort())
      for (const job of jobs) assert.equal(await stage.state(job), 'executing')
    },
  },
  jobOfNoLease: {
    promise: 'settle_completed refuses a job that the named lease does not hold',
    play: async (stage) => {
      await stage.enqueue(1)
      const worker = await stage.worker()
      const { token, ids } = await stage.claim(worker, 1)
      const [waiting = ''] = await stage.enqueue(1)
      assert.deepEqual(await stage.complete(worker, token, [waiting, ...ids], { places: [1, 1] }), [waiting])
      assert.equal(await stage.state(waiting), 'available')
    },
  },
  failedJobOfNoLease: {
    promise: 'settle_attempts refuses a job that the named lease does not hold',
    play: async (stage) => {
      await stage.enqueue(1)
      const worker = await stage.worker()
      const { token } = await stage.claim(worker, 1)
      const [waiting = ''] = await stage.enqueue(1)
      assert.deepEqual(
        await stage.settle(worker, token, [waiting], { to: 'scheduled', ended: 'failed', delay: 1 }),
        [waiting],
      )
      assert.equal(await stage.state(waiting), 'available')
    },
  },
  leaseOfAnother: {
    promise: 'a worker settles nothing under the lease of another',
    play: async (stage) => {
      const jobs = await stage.enqueue(1)
      const owner = await stage.worker()
      const other = await stage.worker()
      const { token } = await stage.claim(owner, 1)
      assert.deepEqual(await stage.complete(other, token, jobs), jobs)
      assert.equal(await stage.state(jobs[0] ?? ''), 'executing')
    },
  },
  handedBackThenCompleted: {
    promise: 'settle_completed refuses a job that was handed back under the same lease',
    play: async (stage) => {
      const [first = ''] = await stage.enqueue(2)
      const worker = await stage.worker()
      const { token } = await stage.claim(worker, 2)
      await stage.settle(worker, token, [first], { to: 'ready', ended: 'handed-back' })
      assert.deepEqual(await stage.complete(worker, token, [first]), [first])
      assert.equal(await stage.state(first), 'available')
    },
  },
  failureTwice: {
    promise: 'settle_attempts records one end of an attempt, however often it is sent',
    play: async (stage) => {
      const [first = ''] = await stage.enqueue(2)
      const worker = await stage.worker()
      const { token } = await stage.claim(worker, 2)
      const failure = { to: 'scheduled', ended: 'failed', delay: 60_000 }
      await stage.settle(worker, token, [first], failure)
      await stage.settle(worker, token, [first], failure)
      assert.equal(await stage.state(first), 'retryable')
    },
  },
  failureAfterCompletion: {
    promise: 'settle_attempts changes nothing of a job that has ended',
    play: async (stage) => {
      const [first = ''] = await stage.enqueue(2)
      const worker = await stage.worker()
      const { token } = await stage.claim(worker, 2)
      await stage.complete(worker, token, [first])
      await stage.settle(worker, token, [first], { to: 'scheduled', ended: 'failed', delay: 60_000 })
      assert.equal(await stage.state(first), 'completed')
    },
  },
  cancelledThenRepeated: {
    promise:
      'settle_attempts says that a job was cancelled also when its answer was lost and it is sent again',
    play: async (stage) => {
      const [first = ''] = await stage.enqueue(2)
      const worker = await stage.worker()
      const { token } = await stage.claim(worker, 2)
      const { cancel } = stage.library.cancel
      await cancel(first, undefined, { driver: stage.driver, database: stage.db })
      await stage.complete(worker, token, [first])
      assert.equal(await stage.state(first), 'cancelled')
      const { operation, settleAttempts } = stage.library
      const items = JSON.stringify([{ token: String(token), job: first, ms: 1, to: 'completed' }])
      const again = { workerId: worker, tokens: [token], items, keep: 20 }
      const answer = await operation.runOne(stage.db, settleAttempts.settleAttempts, again)
      assert.deepEqual([idsOf(answer.refused), idsOf(answer.cancelled)], [[], [first]])
    },
  },
  twoClaims: {
    promise: 'claim_jobs takes each job once, and never waits for another claim',
    play: async (stage) => {
      const jobs = await stage.enqueue(4)
      const [one, two] = [await stage.worker(), await stage.worker()]
      const taken: string[] = []
      await stage.whileOpen(
        async (db) => void taken.push(...(await stage.claim(one, 2, db)).ids),
        async () => void taken.push(...(await withinMs(BLOCKED_MS, 'a claim', stage.claim(two, 4))).ids),
      )
      taken.push(...(await stage.claim(two, 4)).ids)
      assert.deepEqual(taken.sort(), [...jobs].sort())
    },
  },
  twoFewClaims: {
    promise: 'claim_few_jobs takes each job once, and never waits for another claim',
    play: async (stage) => {
      const jobs = await stage.enqueue(4)
      const [one, two] = [await stage.worker(), await stage.worker()]
      const taken: string[] = []
      await stage.whileOpen(
        async (db) => void taken.push(...(await stage.claimFew(one, 2, db))),
        async () => void taken.push(...(await withinMs(BLOCKED_MS, 'a claim', stage.claimFew(two, 4)))),
      )
      taken.push(...(await stage.claimFew(two, 4)))
      assert.deepEqual(taken.sort(), [...jobs].sort())
    },
  },
  fewOfPausedQueue: {
    promise: 'claim_few_jobs leaves the jobs of a paused queue',
    play: async (stage) => {
      await stage.enqueue(1)
      await stage.sql(`insert into holdfast.queue (name, paused_at) values ('main', now())`)
      assert.deepEqual(await stage.claimFew(await stage.worker(), 1), [])
    },
  },
  noSuspectAmongFew: {
    promise: 'claim_few_jobs leaves jobs that have lost two workers',
    play: async (stage) => {
      const [suspect, other] = await stage.enqueue(2)
      await stage.sql('update holdfast.ready set care = 2, crashes = 2 where job_id = $1', [suspect])
      assert.deepEqual(await stage.claimFew(await stage.worker(), 2), [other])
    },
  },
  pausedQueue: {
    promise: 'claim_jobs leaves the jobs of a paused queue',
    play: async (stage) => {
      await stage.enqueue(1)
      await stage.sql(`insert into holdfast.queue (name, paused_at) values ('main', now())`)
      assert.deepEqual((await stage.claim(await stage.worker(), 1)).ids, [])
    },
  },
  suspectsAlone: {
    promise: 'claim_jobs takes at most one job that has lost two workers',
    play: async (stage) => {
      await stage.enqueue(3)
      await stage.sql('update holdfast.ready set care = 2, crashes = 2')
      assert.equal((await stage.claim(await stage.worker(), 3)).ids.length, 1)
    },
  },
  twoParkedClaims: {
    promise: 'claim_parked_jobs takes each job once, and never waits for another claim',
    play: async (stage) => {
      const jobs = await stage.enqueue(4)
      const parker = await stage.worker()
      const { token } = await stage.claim(parker, 4)
      await stage.settle(parker, token, jobs, { to: 'parked', ended: 'parked' })
      for (const job of jobs) assert.equal(await stage.state(job), 'available')
      const { operation, claimParkedJobs } = stage.library
      const claim = async (workerId: bigint, limit: number, db: Database) => {
        const request = { workerId, queues: ['main'], names: ['scene'], contracts: ['1'], limit }
        const [batch] = await operation.run(db, claimParkedJobs.claimParkedJobs, request)
        return claimOf(batch).ids
      }
      const [one, two] = [await stage.worker(), await stage.worker()]
      const taken: string[] = []
      await stage.whileOpen(
        async (db) => void taken.push(...(await claim(one, 2, db))),
        async () => void taken.push(...(await withinMs(BLOCKED_MS, 'a claim', claim(two, 4, stage.db)))),
      )
      taken.push(...(await claim(two, 4, stage.db)))
      assert.deepEqual(taken.sort(), [...jobs].sort())
    },
  },
  rescueOfTheSettled: {
    promise: 'requeue_lost_leases leaves what was settled under the lost lease',
    play: async (stage) => {
      const [done = '', back = '', lost = ''] = await stage.enqueue(3)
      const worker = await stage.worker()
      const { token } = await stage.claim(worker, 3)
      await stage.complete(worker, token, [done])
      await stage.settle(worker, token, [back], { to: 'scheduled', ended: 'failed', delay: 60_000 })
      await stage.silence(worker)
      assert.deepEqual(await stage.rescue(), [lost])
      assert.deepEqual([await stage.state(done), await stage.state(back)], ['completed', 'retryable'])
      assert.equal(await stage.state(lost), 'available')
    },
  },
  rescueOnce: {
    promise: 'requeue_lost_leases closes the leases it took, so that they are rescued once',
    play: async (stage) => {
      const { jobs, now } = await stage.takenOver()
      assert.deepEqual(await stage.sql('select token::text from holdfast.lease'), [
        { token: String(now.token) },
      ])
      assert.deepEqual(await stage.rescue(), [])
      for (const job of jobs) assert.equal(await stage.state(job), 'executing')
    },
  },
  rescueOfTheRenewed: {
    promise: 'lock_lost_leases leaves a worker that renews at this moment',
    play: async (stage) => {
      await stage.enqueue(1)
      const worker = await stage.worker()
      await stage.claim(worker, 1)
      await stage.silence(worker)
      const { operation, renewLeases } = stage.library
      await stage.whileOpen(
        async (db) => await operation.runOne(db, renewLeases.renewLeases, { workerId: worker }),
        async () => assert.deepEqual(await withinMs(BLOCKED_MS, 'a rescue', stage.rescue()), []),
      )
      assert.deepEqual(await stage.rescue(), [])
    },
  },
  rescueOfTheLiving: {
    promise: 'lock_lost_leases leaves workers that renewed in time',
    play: async (stage) => {
      await stage.enqueue(1)
      const worker = await stage.worker()
      await stage.claim(worker, 1)
      assert.deepEqual(await stage.rescue(), [])
    },
  },
  rescueOfOrphans: {
    promise: 'lock_lost_leases takes leases whose worker is gone',
    play: async (stage) => {
      const jobs = await stage.enqueue(1)
      const worker = await stage.worker()
      await stage.claim(worker, 1)
      await stage.sql('delete from holdfast.worker')
      assert.deepEqual(await stage.rescue(), jobs)
    },
  },
  renewalAfterDeath: {
    promise: 'renew_leases tells a worker that was declared dead, and renews its own life only',
    play: async (stage) => {
      const { dead, heir } = await stage.takenOver()
      const { operation, renewLeases } = stage.library
      await stage.silence(heir)
      assert.deepEqual(await operation.run(stage.db, renewLeases.renewLeases, { workerId: dead }), [])
      assert.equal((await stage.rescue()).length, 2)
    },
  },
  releaseOfTheUnknown: {
    promise:
      'release_unknown_leases gives back what the worker does not know, of this worker alone, and nothing that is settled',
    play: async (stage) => {
      await stage.enqueue(3)
      const worker = await stage.worker()
      const other = await stage.worker()
      const known = await stage.claim(worker, 1)
      const unknown = await stage.claim(worker, 1)
      const others = await stage.claim(other, 1)
      const { operation, releaseUnknownLeases } = stage.library
      const request = { workerId: worker, known: [known.token] }
      assert.equal(
        (await operation.runOne(stage.db, releaseUnknownLeases.releaseUnknownLeases, request)).released,
        1,
      )
      assert.equal(await stage.state(known.ids[0] ?? ''), 'executing')
      assert.equal(await stage.state(others.ids[0] ?? ''), 'executing')
      assert.equal(await stage.state(unknown.ids[0] ?? ''), 'available')
      assert.equal((await stage.claim(worker, 1)).ids[0], unknown.ids[0])
    },
  },
  closingOfTheFinished: {
    promise: 'close_leases ends a lease of this worker of which nothing is left, and no other',
    play: async (stage) => {
      await stage.enqueue(6)
      const worker = await stage.worker()
      const other = await stage.worker()
      const finished = await stage.claim(worker, 2)
      const executing = await stage.claim(worker, 2)
      const others = await stage.claim(other, 2)
      for (const { token, ids } of [finished, { ...executing, ids: executing.ids.slice(0, 1) }]) {
        for (const [i, id] of ids.entries()) {
          await stage.complete(worker, token, [id], { places: [i + 1] })
        }
      }
      for (const [i, id] of others.ids.entries()) {
        await stage.complete(other, others.token, [id], { places: [i + 1] })
      }
      const tokens = [finished, executing, others].map(({ token }) => token)
      const { operation, closeLeases } = stage.library
      const { left } = await operation.runOne(stage.db, closeLeases.closeLeases, { workerId: worker, tokens })
      assert.deepEqual(left, [String(executing.token)])
      assert.deepEqual(
        (await stage.sql('select token from holdfast.lease order by token')).map(({ token }) =>
          String(token),
        ),
        [executing.token, others.token].map(String),
      )
      assert.equal(await stage.state(executing.ids[1] ?? ''), 'executing')
    },
  },
  releaseOfTheSettled: {
    promise: 'release_unknown_leases leaves what was settled under the lease',
    play: async (stage) => {
      const [done = '', failed = '', held = ''] = await stage.enqueue(3)
      const worker = await stage.worker()
      const { token } = await stage.claim(worker, 3)
      await stage.complete(worker, token, [done])
      await stage.settle(worker, token, [failed], { to: 'scheduled', ended: 'failed', delay: 60_000 })
      const { operation, releaseUnknownLeases } = stage.library
      await operation.runOne(stage.db, releaseUnknownLeases.releaseUnknownLeases, {
        workerId: worker,
        known: [],
      })
      const states = [await stage.state(done), await stage.state(failed), await stage.state(held)]
      assert.deepEqual(states, ['completed', 'retryable', 'available'])
    },
  },
  removalWithLeases: {
    promise: 'remove_worker keeps the row of a worker that still holds a lease, for the next rescue',
    play: async (stage) => {
      const jobs = await stage.enqueue(1)
      const [worker, other] = [await stage.worker(), await stage.worker()]
      await stage.claim(worker, 1)
      const { operation, removeWorker } = stage.library
      const { leases } = await operation.runOne(stage.db, removeWorker.removeWorker, { workerId: worker })
      assert.equal(leases, 1)
      const rows = await stage.sql(
        "select id::text, heartbeat_at < now() - interval '1 day' as stale from holdfast.worker order by id",
      )
      assert.deepEqual(rows, [
        { id: String(worker), stale: true },
        { id: String(other), stale: false },
      ])
      assert.deepEqual(await stage.rescue(), jobs)
    },
  },
  promotionOfTheDue: {
    promise: 'promote_jobs moves what is due, once, and never waits for another promoter',
    play: async (stage) => {
      const due = await stage.enqueue(2, { in: 60_000 })
      const [later = ''] = await stage.enqueue(1, { in: 60_000 })
      await stage.sql(`update holdfast.scheduled set run_at = now() - interval '1 s' where job_id <> $1`, [
        later,
      ])
      const { operation, promoteJobs } = stage.library
      const promote = async (db: Database) =>
        (await operation.runOne(db, promoteJobs.promoteJobs, { limit: 10 })).promoted
      await stage.whileOpen(
        async (db) => assert.equal(await promote(db), 2),
        async () => assert.equal(await withinMs(BLOCKED_MS, 'a promotion', promote(stage.db)), 0),
      )
      assert.deepEqual(
        [await stage.state(due[0] ?? ''), await stage.state(later)],
        ['available', 'scheduled'],
      )
    },
  },
  cancelDuringSettle: {
    promise: 'a cancel that meets a settle waits for it, and does not call a completed job cancelled',
    play: async (stage) => {
      const [first = ''] = await stage.enqueue(2)
      const worker = await stage.worker()
      const { token } = await stage.claim(worker, 2)
      const { cancel } = stage.library.cancel
      let answer: ReturnType<typeof cancel> | undefined
      await stage.whileOpen(
        async (db) => await stage.complete(worker, token, [first], { db }),
        async () => {
          answer = cancel(first, undefined, { driver: stage.driver, database: stage.db })
          await stage.waiting()
        },
      )
      assert.deepEqual(await answer, { status: 'finished', state: 'completed' })
    },
  },
} as const satisfies Readonly<Record<string, Scene>>

export type SceneName = keyof typeof scenes

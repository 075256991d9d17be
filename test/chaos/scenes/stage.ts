import assert from 'node:assert/strict'
import pg from 'pg'
import type { Driver, Queryable } from '../../../src/driver/driver.ts'
import type { Database } from '../../../src/driver/operation.ts'
import type { ClaimedBatch } from '../../../src/jobs/sql/claim-jobs.ts'
import type { Library } from '../library.ts'

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
export const BLOCKED_MS = 3000

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

export function claimOf(batch: ClaimedBatch | undefined): Claim {
  return { token: batch?.token ?? 0n, ids: idsOf(batch?.ids) }
}

export function idsOf(json: unknown): readonly string[] {
  return (json ?? []) as readonly string[]
}

/** `places` of the jobs in their lease; by default, as they come. */
export function settleRequest(
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

export async function withinMs<T>(ms: number, what: string, answer: Promise<T>): Promise<T> {
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

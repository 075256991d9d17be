import { AsyncResource } from 'node:async_hooks'
import type { EventHub } from '../base/events.ts'
import type { Driver } from '../driver/driver.ts'
import { type Database, run, runOne } from '../driver/operation.ts'
import type { AnyJob } from '../jobs/define-job.ts'
import { defineJobs } from '../jobs/sql/define-jobs.ts'
import { ensurePartitions } from '../jobs/sql/ensure-partitions.ts'
import { sweepExpiredKeys } from '../keys/prune-keys.ts'
import { requireVersion } from '../migrations/migrate.ts'
import { prune, type Retention } from '../worker/maintenance/pruner.ts'

/** Partitions are asked for when ids come so near to the last one. */
const PARTITION_MARGIN = 1_500_000n
/** Of so many rounds of upkeep, a minute apart, one looks at partitions and retention. */
const PRUNE_EVERY = 5

export interface UpkeepOptions {
  readonly driver: Driver
  readonly database: Database
  readonly events: EventHub
  readonly jobs: ReadonlyMap<string, AnyJob>
  readonly retention: Retention
}

/** What an application does for its tables beside enqueueing: registers jobs, has partitions made, drops what is old. */
export class Upkeep {
  readonly #options: UpkeepOptions
  /** Work of our own that a call sets off must not count as inside the caller's transaction. */
  readonly #outside = new AsyncResource('holdfast.app')
  #coveredUpTo = 0n
  /** Begins anywhere, so that workers that start together do not all look at once. */
  #rounds = Math.floor(Math.random() * PRUNE_EVERY)
  #covering: Promise<void> | undefined

  constructor(options: UpkeepOptions) {
    this.#options = options
  }

  /** Ends when nothing of this is under way. */
  async idle(): Promise<void> {
    await this.#covering
  }

  /** One round: cheap, may this release go on? It marks expired keys. And rarely partitions ahead of need, and what is past its retention. */
  async round(): Promise<void> {
    const { driver, database, retention } = this.#options
    await requireVersion(driver, database.schema)
    await sweepExpiredKeys(database)
    this.#rounds += 1
    if (this.#rounds % PRUNE_EVERY !== 1) return
    await this.#cover()
    await prune(database, retention)
  }

  /** Registers the jobs for enqueueing by SQL. */
  async register(): Promise<void> {
    const jobs = [...this.#options.jobs.values()]
    await run(this.#options.database, defineJobs, {
      names: jobs.map((job) => job.name),
      queues: jobs.map((job) => job.queue),
      priorities: jobs.map((job) => job.priority),
      maxAttempts: jobs.map((job) => job.maxAttempts),
      contracts: jobs.map((job) => job.contract),
    })
    await this.#cover()
  }

  /** Jobs were stored; `items` are those that are committed. */
  stored(lastId: string, items: readonly { readonly queue: string }[]): void {
    const { events } = this.#options
    if (items.length > 0 && events.wants('jobs.enqueued')) {
      const counts = new Map<string, number>()
      for (const { queue } of items) counts.set(queue, (counts.get(queue) ?? 0) + 1)
      for (const [queue, count] of counts) events.emit('jobs.enqueued', { count, queue })
    }
    if (BigInt(lastId) + PARTITION_MARGIN > this.#coveredUpTo)
      this.#outside.runInAsyncScope(() => void this.#cover().catch(() => undefined))
  }

  /** Has partitions made ahead of need. Who finds them missing is told by the insert; this is not to fail a caller. */
  async #cover(): Promise<void> {
    this.#covering ??= (async () => {
      try {
        const { endId } = await runOne(this.#options.database, ensurePartitions, {})
        this.#coveredUpTo = endId
      } finally {
        this.#covering = undefined
      }
    })()
    await this.#covering
  }
}

import { hostname } from 'node:os'
import { channelOf } from '../base/channel.ts'
import { checkName } from '../base/check.ts'
import type { EventHub } from '../base/events.ts'
import { type Logger, silentLogger } from '../base/logger.ts'
import type { Driver } from '../driver/driver.ts'
import type { Database } from '../driver/operation.ts'
import type { JobCoordination } from '../jobs/context.ts'
import type { Enqueuer } from '../jobs/enqueue.ts'
import { requireVersion } from '../migrations/migrate.ts'
import { Resources } from '../resources/resources.ts'
import type { ContextServices } from '../worker/handler-context.ts'
import { Worker } from '../worker/worker.ts'
import type { WorkerOptions } from './app-options.ts'
import type { Composition } from './composition.ts'
import type { Transactions } from './transactions.ts'
import type { Upkeep } from './upkeep.ts'
import { version } from './version.ts'
import { workerQueues } from './worker-queues.ts'

export interface WorkersOptions {
  readonly composition: Composition
  readonly driver: Driver
  readonly database: Database
  readonly events: EventHub
  readonly enqueuer: Enqueuer
  readonly transactions: Transactions
  readonly upkeep: Upkeep
  readonly coordination: JobCoordination
  /** The application's own, which goes before a worker's. */
  readonly logger: Logger | undefined
}

/** The workers of an application in this process, and what their handlers work through. */
export class Workers {
  readonly #options: WorkersOptions
  readonly #open = new Set<Worker>()

  constructor(options: WorkersOptions) {
    this.#options = options
  }

  /** A worker, not started. @throws {InvalidArgumentError} A queue is not configured, or a concurrency out of range. */
  open(options: WorkerOptions): Worker {
    const { composition, driver, database, events, upkeep } = this.#options
    const worker = new Worker(
      {
        driver,
        schema: composition.schema,
        prepare: database.prepare,
        channel: channelOf(composition.schema),
        appName: composition.name,
        version,
        events,
        services: this.services(options.logger),
        jobs: composition.jobs,
        prepareSchema: async () => {
          await requireVersion(driver, composition.schema)
          await upkeep.register()
        },
        upkeep: async () => await upkeep.round(),
        onStopped: (stopped) => this.#open.delete(stopped),
      },
      {
        name: checkName('name', options.name ?? `${hostname()}:${process.pid}`),
        queues: workerQueues(composition, options),
        leaseMs: composition.leaseMs,
        maxPollMs: composition.maxPollMs,
        shutdownMs: composition.shutdownMs,
        shutdownGraceMs: composition.shutdownGraceMs,
        endProcessWhenStuck: options.endProcessWhenStuck ?? false,
      },
    )
    this.#open.add(worker)
    return worker
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#open].map(async (worker) => await worker.stop()))
  }

  /** What handlers work through, whoever runs them; with resources of their own. */
  services(logger: Logger | undefined): ContextServices {
    const { composition, driver, database, events, enqueuer, transactions, coordination } = this.#options
    return {
      logger: this.#options.logger ?? logger ?? silentLogger,
      enqueue: async (job, input, options) => await enqueuer.enqueue(job, input, options),
      events,
      coordination,
      requireOutside: () => transactions.requireOutside(),
      database: plannedAnew(database),
      databaseOf: (tx) => transactions.databaseOf(tx),
      transact: async (fn, parts) => await transactions.run(fn, { ...parts, enqueuer }),
      idleMs: driver.singleConnection ? undefined : composition.leaseMs,
      authorize: composition.authorize,
      resources: new Resources({
        replacements: composition.resources,
        onError: (during, error) => events.emit('worker.error', { during, error, retryInMs: 0 }),
      }),
    }
  }
}

/**
 * For statements on a pool that must not keep a plan: one made while the ledger was empty would read it from end to end
 * for as long as its connection lives. A worker's own sessions have settings against that, a pool may be the user's.
 */
export function plannedAnew(database: Database): Database {
  return { ...database, prepare: false }
}

import { AsyncLocalStorage, AsyncResource } from 'node:async_hooks'
import { hostname } from 'node:os'
import { createDriver } from '../adapters/create-driver.ts'
import { recognise } from '../adapters/recognise.ts'
import { checkName, checkNumber } from '../base/check.ts'
import { InvalidArgumentError, OutsideTransactionError } from '../base/errors.ts'
import { EventHub, type Events } from '../base/events.ts'
import { limits } from '../base/limits.ts'
import { silentLogger } from '../base/logger.ts'
import type { Driver } from '../driver/driver.ts'
import { type Database, run, runOne } from '../driver/operation.ts'
import type { EffectCall } from '../effects/effect-options.ts'
import { type OutsideEffectOptions, performOutside } from '../effects/outside-effect.ts'
import type { AnyJob, JobInput } from '../jobs/define-job.ts'
import { Enqueuer, type JobToEnqueue } from '../jobs/enqueue.ts'
import type { EnqueueAnswer, EnqueueOptions } from '../jobs/enqueue-options.ts'
import { JobHandle } from '../jobs/job-handle.ts'
import { defineJobs } from '../jobs/sql/define-jobs.ts'
import { ensurePartitions } from '../jobs/sql/ensure-partitions.ts'
import { Transaction, type TransactionParts } from '../jobs/transaction.ts'
import { channelOf } from '../migrations/channel.ts'
import { type MigrateResult, migrate, requireVersion } from '../migrations/migrate.ts'
import { prune } from '../worker/maintenance/pruner.ts'
import { Worker } from '../worker/worker.ts'
import type { AppOptions, WorkerOptions } from './app-options.ts'
import { type Composition, compose } from './composition.ts'
import { version } from './version.ts'

/** Partitions are asked for when ids come so near to the last one. */
const PARTITION_MARGIN = 1_500_000n
/** Of so many rounds of upkeep, a minute apart, one looks at partitions and retention. */
const PRUNE_EVERY = 5

/**
 * An application: its jobs and queues over one database. Producers, workers, the command and tests use the same
 * object. Connects when first used.
 */
export class App {
  readonly name: string
  /** Where to listen for what happens: see {@link EventMap}. */
  readonly events: Events
  readonly composition: Composition
  readonly #options: AppOptions
  readonly #driver: Driver
  readonly #database: Database
  readonly #events = new EventHub()
  readonly #enqueuer: Enqueuer
  readonly #insideTransaction = new AsyncLocalStorage<true>()
  readonly #workers = new Set<Worker>()
  /** Work of our own that a call sets off must not count as inside the caller's transaction. */
  readonly #outside = new AsyncResource('holdfast.app')
  #coveredUpTo = 0n
  /** Begins anywhere, so that workers that start together do not all look at once. */
  #upkeeps = Math.floor(Math.random() * PRUNE_EVERY)
  #covering: Promise<void> | undefined

  /** @internal Use {@link defineApp}. */
  constructor(options: AppOptions) {
    this.#options = options
    this.composition = compose(options)
    this.name = this.composition.name
    this.events = this.#events
    const { maxConnections, pooler } = options
    this.#driver = createDriver(options.database, {
      applicationName: `holdfast ${this.name}`.slice(0, 63),
      ...(maxConnections === undefined ? {} : { maxConnections }),
      ...(pooler === undefined ? {} : { pooler }),
    })
    this.#database = { queryable: this.#driver, schema: this.composition.schema, prepare: pooler !== true }
    this.#enqueuer = new Enqueuer({
      database: this.#database,
      databaseOf: (tx) => this.#databaseOf(tx),
      requireOutside: () => this.#requireOutside(),
      jobs: this.composition.jobs,
      queues: new Set(this.composition.queues.keys()),
      onStored: (lastId, items) => this.#stored(lastId, items),
    })
  }

  /**
   * Enqueues a job. When it resolves the job is committed or, with `tx`, part of your transaction: it then commits
   * and rolls back with it, to a savepoint too.
   *
   * @throws {InvalidInputError} The job's schema refuses `input`. Nothing was sent, as with the next four.
   * @throws {NotStorableError} `input` holds something that JSON cannot carry; names the path.
   * @throws {TooLargeError} `input` is larger than 1 MiB as JSON.
   * @throws {InvalidArgumentError} An option is out of range; names the field.
   * @throws {UnknownJobError} The application does not list this job.
   * @throws {OutsideTransactionError} Called without `tx` inside `app.transaction`: use its `tx.enqueue`.
   * @throws {TransactionRequiredError} `tx` is not an open transaction of a known driver.
   * @throws {OutcomeUnknownError} The connection broke before the answer: the job may be stored. Repeating is safe
   *   with an `idempotencyKey`, or a `uniqueKey` while the job is not ended.
   * @throws {UnavailableError} The database cannot be reached; nothing was stored.
   *
   * @example
   * const { id, status } = await app.enqueue(sendConfirmation, { orderId: '42' }, { uniqueKey: 'order-42' })
   */
  async enqueue<J extends AnyJob>(
    job: J,
    input: JobInput<J>,
    options?: EnqueueOptions,
  ): Promise<EnqueueAnswer> {
    return await this.#enqueuer.enqueue(job, input, options)
  }

  /**
   * Enqueues many jobs with one statement: all are stored or none. 0 to 100,000 at a time.
   *
   * @returns One answer for each, in the order given; a key that comes twice finds its own first job.
   * @throws What {@link enqueue} throws; the field of an error names the item: `jobs[3].priority`.
   */
  async enqueueMany(
    jobs: readonly JobToEnqueue[],
    options: Pick<EnqueueOptions, 'tx'> = {},
  ): Promise<readonly EnqueueAnswer[]> {
    return await this.#enqueuer.enqueueMany(jobs, options)
  }

  /**
   * Runs `fn` in a transaction at READ COMMITTED: its statements, and its enqueues, commit together when it returns
   * and roll back together when it throws.
   *
   * @throws What `fn` throws; {@link OutcomeUnknownError} if the answer to the commit was lost;
   *   {@link TransactionAbortedError} if `fn` hid the error of a statement, so that nothing was committed.
   */
  async transaction<T>(fn: (tx: Transaction) => Promise<T>): Promise<T> {
    return await this.#transact(fn, { tenant: '', requireDeclared: () => {} })
  }

  /**
   * As `ctx.effect`, outside jobs: an HTTP handler, a script. Shares the ledger with jobs: what one of them did under the
   * same tenant, name and key is not called again. Nothing is retried; call it again with the same key.
   *
   * @throws {EffectUncertainError} An earlier call may have happened or not, and `ifUncertain` is `'ask'`. Not called.
   * @throws {EffectBusyError} The same effect is being called elsewhere, for longer than `waitMs`. Not called.
   * @throws {InvalidArgumentError} {@link OutsideTransactionError} Nothing was sent. What `fn` threw.
   * @throws {UnavailableError} The database cannot be reached; if `fn` was called, the effect is in doubt.
   */
  async effect<T>(
    name: string,
    options: OutsideEffectOptions<T>,
    fn: (call: EffectCall) => T | Promise<T>,
  ): Promise<T> {
    const requireOutside = () => this.#requireOutside()
    const services = { database: this.#plannedAnew, events: this.#events, requireOutside }
    return await performOutside(services, name, options, fn)
  }

  /** A handle on a job by its id: its state, its end, cancelling it. Reads nothing yet. */
  job(id: string | bigint): JobHandle {
    return new JobHandle(String(id), { driver: this.#driver, database: this.#database })
  }

  /**
   * A worker for the application's queues, not started.
   *
   * @throws {InvalidArgumentError} A queue is not configured, or a concurrency out of range.
   */
  worker(options: WorkerOptions = {}): Worker {
    const { composition } = this
    const names = options.queues ?? [...composition.queues.keys()]
    if (names.length === 0)
      throw new InvalidArgumentError({ field: 'queues', problem: 'must name at least one queue' })
    const concurrencies = new Map(Object.entries(options.concurrency ?? {}))
    for (const name of concurrencies.keys()) {
      if (names.includes(name)) continue
      const problem = `names "${name}", which is not a queue of this worker`
      throw new InvalidArgumentError({ field: 'concurrency', problem })
    }
    const queues = [...new Set(names)].map((name) => {
      const configured = composition.queues.get(name)
      if (configured === undefined) {
        const known = [...composition.queues.keys()].join(', ')
        throw new InvalidArgumentError({
          field: 'queues',
          problem: `names "${name}"; configured are: ${known}`,
        })
      }
      const concurrency = checkNumber(
        `concurrency.${name}`,
        concurrencies.get(name) ?? configured.concurrency,
        limits.concurrency,
      )
      return { name, concurrency }
    })
    const worker = new Worker(
      {
        driver: this.#driver,
        schema: composition.schema,
        prepare: this.#database.prepare,
        channel: channelOf(composition.schema),
        appName: composition.name,
        version,
        events: this.#events,
        services: {
          logger: this.#options.logger ?? options.logger ?? silentLogger,
          enqueue: async (job, input, enqueueOptions) =>
            await this.#enqueuer.enqueue(job, input, enqueueOptions),
          events: this.#events,
          database: this.#plannedAnew,
          databaseOf: (tx) => this.#databaseOf(tx),
          transact: async (fn, transactOptions) => await this.#transact(fn, transactOptions),
          requireOutside: () => this.#requireOutside(),
          idleMs: this.#driver.singleConnection ? undefined : composition.leaseMs,
        },
        jobs: composition.jobs,
        prepareSchema: async () => {
          await requireVersion(this.#driver, composition.schema)
          await this.#register()
        },
        upkeep: async () => await this.#upkeep(),
        onStopped: (stopped) => this.#workers.delete(stopped),
      },
      {
        name: checkName('name', options.name ?? `${hostname()}:${process.pid}`),
        queues,
        leaseMs: composition.leaseMs,
        maxPollMs: composition.maxPollMs,
        shutdownMs: composition.shutdownMs,
        shutdownGraceMs: composition.shutdownGraceMs,
        endProcessWhenStuck: options.endProcessWhenStuck ?? false,
      },
    )
    this.#workers.add(worker)
    return worker
  }

  /**
   * Brings the schema to this release's version and registers the jobs for enqueueing by SQL. Safe to call from any
   * number of processes at once, at every deploy; a crash in between is mended by the next call.
   *
   * @throws {SchemaVersionError} A newer release has changed the schema in a way that this one cannot work with.
   */
  async migrate(): Promise<MigrateResult> {
    const result = await migrate(this.#driver, this.composition.schema)
    await requireVersion(this.#driver, this.composition.schema)
    await this.#register()
    return result
  }

  /**
   * Stops this application's workers and closes the connections it opened. Never closes a pool or instance of
   * yours. Safe to repeat.
   */
  async close(): Promise<void> {
    await Promise.all([...this.#workers].map(async (worker) => await worker.stop()))
    await this.#enqueuer.idle()
    await this.#covering
    await this.#driver.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** @internal For the command and the dashboard. */
  get internals(): { readonly driver: Driver; readonly database: Database; readonly events: EventHub } {
    return { driver: this.#driver, database: this.#database, events: this.#events }
  }

  /**
   * For statements on a pool that must not keep a plan: one made while the ledger was empty would read it from end to end
   * for as long as its connection lives. A worker's own sessions have settings against that, a pool may be the user's.
   */
  get #plannedAnew(): Database {
    return { ...this.#database, prepare: false }
  }

  #requireOutside(): void {
    if (this.#insideTransaction.getStore()) throw new OutsideTransactionError()
    this.#driver.requireOutside()
  }

  #databaseOf(tx: unknown): Database {
    return { queryable: recognise(tx), schema: this.composition.schema, prepare: false }
  }

  async #transact<T>(
    fn: (tx: Transaction, inside: Database) => Promise<T>,
    options: Pick<TransactionParts, 'tenant' | 'requireDeclared'>,
  ): Promise<T> {
    if (this.#insideTransaction.getStore()) throw new OutsideTransactionError()
    const { schema } = this.composition
    const parts = { enqueuer: this.#enqueuer, schema, ...options }
    return await this.#driver.transaction(async (queryable) => {
      const tx = new Transaction({ ...parts, queryable })
      const inside = { queryable, schema, prepare: false }
      return await this.#insideTransaction.run(true, async () => await fn(tx, inside))
    })
  }

  /** Cheap and often: may this release go on? Rarely: partitions ahead of need, and what is past its retention. */
  async #upkeep(): Promise<void> {
    await requireVersion(this.#driver, this.composition.schema)
    this.#upkeeps += 1
    if (this.#upkeeps % PRUNE_EVERY !== 1) return
    await this.#cover()
    await prune(this.#database, this.composition.retention)
  }

  async #register(): Promise<void> {
    const jobs = [...this.composition.jobs.values()]
    await run(this.#database, defineJobs, {
      names: jobs.map((job) => job.name),
      queues: jobs.map((job) => job.queue),
      priorities: jobs.map((job) => job.priority),
      maxAttempts: jobs.map((job) => job.maxAttempts),
      contracts: jobs.map((job) => job.contract),
    })
    await this.#cover()
  }

  #stored(lastId: string, items: readonly { readonly queue: string }[]): void {
    if (items.length > 0 && this.#events.wants('jobs.enqueued')) {
      const counts = new Map<string, number>()
      for (const { queue } of items) counts.set(queue, (counts.get(queue) ?? 0) + 1)
      for (const [queue, count] of counts) this.#events.emit('jobs.enqueued', { count, queue })
    }
    if (BigInt(lastId) + PARTITION_MARGIN > this.#coveredUpTo)
      this.#outside.runInAsyncScope(() => void this.#cover().catch(() => undefined))
  }

  /** Has partitions made ahead of need. Who finds them missing is told by the insert; this is not to fail a caller. */
  async #cover(): Promise<void> {
    this.#covering ??= (async () => {
      try {
        const { endId } = await runOne(this.#database, ensurePartitions, {})
        this.#coveredUpTo = endId
      } finally {
        this.#covering = undefined
      }
    })()
    await this.#covering
  }
}

/**
 * Defines an application.
 *
 * @returns The application, not connected. Checks that everything fits together.
 * @throws {CompositionError} It does not: a job's queue is not configured, two jobs have one name, a setting is
 *   out of range, and so on. All faults are listed at once.
 * @throws {InvalidArgumentError} `database` is nothing that is known; addresses in messages are without secrets.
 *
 * @example
 * export default defineApp({
 *   name: 'shop',
 *   database: process.env.DATABASE_URL ?? 'pglite:./.holdfast',
 *   jobs: [sendConfirmation],
 *   queues: { mail: { concurrency: 4 } },
 * })
 */
export function defineApp(options: AppOptions): App {
  return new App(options)
}

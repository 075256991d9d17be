import { createDriver } from '../adapters/create-driver.ts'
import { EventHub, type Events } from '../base/events.ts'
import type { Driver } from '../driver/driver.ts'
import type { Database } from '../driver/operation.ts'
import type { OutsideEffect } from '../effects/effect-name.ts'
import type { EffectCall } from '../effects/effect-options.ts'
import { type OutsideEffectOptions, performOutside } from '../effects/outside-effect.ts'
import type { AnyJob, JobInput } from '../jobs/define-job.ts'
import { Enqueuer, type JobToEnqueue } from '../jobs/enqueue.ts'
import type { EnqueueAnswer, EnqueueOptions } from '../jobs/enqueue-options.ts'
import { JobHandle } from '../jobs/job-handle.ts'
import type { Transaction } from '../jobs/transaction.ts'
import type { Keys } from '../keys/keys.ts'
import type { Locks } from '../locks/locks.ts'
import { type MigrateResult, migrate, requireVersion } from '../migrations/migrate.ts'
import type { Producer, ProducerInput, ProducerResult } from '../producers/define-producer.ts'
import type { OpenWork } from '../producers/producer-transaction.ts'
import type { ScriptParams } from '../scripts/params.ts'
import type { ScriptResult } from '../scripts/result.ts'
import type { ScriptOptions } from '../scripts/scripts.ts'
import type { Sequences } from '../sequences/sequences.ts'
import type { ContextServices } from '../worker/handler-context.ts'
import type { Worker } from '../worker/worker.ts'
import type { AppOptions, WorkerOptions } from './app-options.ts'
import { type Composition, compose } from './composition.ts'
import { Coordination } from './coordination.ts'
import { type DryRun, type ProduceOptions, produce } from './produce.ts'
import { ANYBODY, queryableOf, Transactions } from './transactions.ts'
import { Upkeep } from './upkeep.ts'
import { joinTransaction } from './user-transaction.ts'
import { plannedAnew, Workers } from './workers.ts'

/** What rooms above the application reach through it. */
export interface Internals {
  readonly driver: Driver
  readonly database: Database
  readonly events: EventHub
  readonly coordination: Coordination
  /** As they were given to {@link defineApp}. */
  readonly options: AppOptions
  /** What handlers of a worker work through. */
  readonly services: () => ContextServices
  /** Tells a migrated schema of the application's jobs. */
  readonly register: () => Promise<void>
}

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
  readonly #transactions: Transactions
  readonly #workers: Workers
  readonly #upkeep: Upkeep
  readonly #coordination: Coordination

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
    const { jobs, retention, schema } = this.composition
    this.#transactions = new Transactions(this.#driver, schema)
    this.#coordination = new Coordination({
      driver: this.#driver,
      database: this.#database,
      transactions: this.#transactions,
      events: this.#events,
      pooler: pooler === true,
    })
    this.#upkeep = new Upkeep({
      driver: this.#driver,
      database: this.#database,
      events: this.#events,
      jobs,
      retention,
    })
    this.#enqueuer = new Enqueuer({
      database: this.#database,
      databaseOf: (tx) => this.#transactions.databaseOf(tx),
      requireOutside: () => this.#transactions.requireOutside(),
      jobs,
      queues: new Set(this.composition.queues.keys()),
      onStored: (lastId, items) => this.#upkeep.stored(lastId, items),
    })
    this.#workers = new Workers({
      composition: this.composition,
      driver: this.#driver,
      database: this.#database,
      events: this.#events,
      enqueuer: this.#enqueuer,
      transactions: this.#transactions,
      upkeep: this.#upkeep,
      coordination: this.#coordination,
      logger: options.logger,
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
    return await this.#transactions.run(fn, { ...ANYBODY, enqueuer: this.#enqueuer })
  }

  /**
   * Runs a producer: its statements and enqueues commit together when it returns, and roll back together when it throws.
   * With `tx` they are part of your transaction, and commit or roll back with that.
   *
   * @returns What its `run` gives; with `dryRun` a {@link DryRun}: everything was rolled back, nothing announced.
   * @throws {InvalidArgumentError} The application does not list the producer, or `dryRun` comes with `tx`. Nothing was
   *   sent, as with the next two.
   * @throws {InvalidInputError} The producer's schema refuses `input`.
   * @throws {TransactionRequiredError} `tx` is not an open transaction of a known driver.
   * @throws {UndeclaredEffectError} It enqueued a job that its effects do not name.
   * @throws What its `run` throws, and what {@link transaction} throws.
   *
   * @example
   * await app.produce(confirmOrder, { orderId: '42' })
   * const { enqueues } = await app.produce(confirmOrder, { orderId: '42' }, { dryRun: true })
   */
  async produce<P extends Producer>(
    producer: P,
    input: ProducerInput<P>,
    options: ProduceOptions & { readonly dryRun: true },
  ): Promise<DryRun<ProducerResult<P>>>
  async produce<P extends Producer>(
    producer: P,
    input: ProducerInput<P>,
    options?: ProduceOptions & { readonly dryRun?: false | undefined },
  ): Promise<ProducerResult<P>>
  async produce(producer: Producer, input: unknown, options: ProduceOptions = {}): Promise<unknown> {
    const inside = async <T>(work: OpenWork, fn: (work: OpenWork) => Promise<T>) =>
      await this.#transactions.within(async () => await fn(work))
    return await produce(
      {
        producers: this.composition.producers,
        begin: async (fn) => await this.transaction(fn),
        join: async (tx, fn) => await inside(joinTransaction(tx, this.#enqueuer, queryableOf), fn),
      },
      { producer, input, options },
    )
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
    name: OutsideEffect,
    options: OutsideEffectOptions<T>,
    fn: (call: EffectCall) => T | Promise<T>,
  ): Promise<T> {
    const requireOutside = () => this.#transactions.requireOutside()
    const services = { database: plannedAnew(this.#database), events: this.#events, requireOutside }
    return await performOutside(services, name, options, fn)
  }

  /** Locks with leases and fencing tokens. */
  get locks(): Locks {
    return this.#coordination.locks
  }

  /** Numbers that are given once each: one at a time or in ranges, in order and without gaps, or from memory. */
  get sequences(): Sequences {
    return this.#coordination.sequences
  }

  /**
   * Runs a script over keys in the database, in one round trip: all of it takes effect, or nothing. Keys that it names are
   * locked before it starts, so that it is as if it ran alone. The language is described in the reference of scripts.
   *
   * `params` are values by name, with or without `@`; numbers and booleans reach the script as text. With `tx` the script
   * is part of your transaction, which stays usable when the script fails.
   *
   * @returns What the last statement came to, when all is committed (with `tx`: done). A refused condition, a missing key
   *   and an empty listing are answers.
   * @throws {ScriptSyntaxError} With line, column and the line itself. Nothing was sent.
   * @throws {ScriptError} A statement failed; names the line. Everything is undone, as with the next two.
   * @throws {ScriptThrownError} The script said `throw`.
   * @throws {ScriptAbortedError} It said `rollback`, did not say `commit` in its block, waited too long for a key, or ran too long.
   * @throws {InvalidArgumentError} A parameter or option that is out of range; names the field. Nothing was sent, as with
   *   the next two.
   * @throws {OutsideTransactionError} Called without `tx` inside `app.transaction`.
   * @throws {TransactionRequiredError} `tx` is not an open transaction of a known driver.
   * @throws {OutcomeUnknownError} The connection broke before the answer: all of the script took effect, or nothing. Never
   *   for scripts that write nothing.
   * @throws {UnavailableError} The database cannot be reached; nothing took effect.
   *
   * @example
   * const answer = await app.script('let n = get @key; set @key to_int(n) + 1; return n', { key: 'visits' })
   * answer.integer()
   */
  async script(text: string, params?: ScriptParams, options?: ScriptOptions): Promise<ScriptResult> {
    return await this.#coordination.script(text, params, options)
  }

  /** Keys with values, revisions and history, in the application's database. */
  get keys(): Keys {
    return this.#coordination.keys
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
    return this.#workers.open(options)
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
    await this.#upkeep.register()
    return result
  }

  /**
   * Stops this application's workers and closes the connections it opened. Never closes a pool or instance of
   * yours. Safe to repeat.
   */
  async close(): Promise<void> {
    await this.#workers.stop()
    await this.#enqueuer.idle()
    await this.#upkeep.idle()
    await this.#coordination.close()
    await this.#driver.close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  /** @internal For the command, the dashboard and the test kit. */
  get internals(): Internals {
    return {
      driver: this.#driver,
      database: this.#database,
      events: this.#events,
      coordination: this.#coordination,
      options: this.#options,
      services: () => this.#workers.services(undefined),
      register: async () => await this.#upkeep.register(),
    }
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

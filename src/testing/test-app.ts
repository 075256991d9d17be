import { hostname } from 'node:os'
import type { App } from '../app/app.ts'
import type { ResourceReplacement } from '../app/app-options.ts'
import { version } from '../app/version.ts'
import { InvalidArgumentError, UndeclaredEffectError } from '../base/errors.ts'
import type { AnyJob, JobInput } from '../jobs/define-job.ts'
import type { EnqueueAnswer, EnqueueOptions } from '../jobs/enqueue-options.ts'
import { attemptServices } from './attempt-services.ts'
import { type DrainOptions, type DrainReport, drain } from './drain.ts'
import { DrainError } from './errors.ts'
import { type EnqueuedJob, type EnqueuedOptions, expectEnqueued, readEnqueued } from './expect-enqueued.ts'
import type { JobEnd } from './job-end.ts'
import { type TestDatabase, takeDatabase } from './test-database.ts'
import { AttemptStuck, TestWorker, type TestWorkerOptions } from './test-worker.ts'
import { type UndeclaredWrite, watchWrites } from './undeclared-writes.ts'
import type { TestClock } from './virtual-clock.ts'
import { WatchedApp } from './watched-app.ts'

const MAX_JOBS = 10_000
/** Below the five seconds after which test runners give up: who hangs is named. */
const TIMEOUT_MS = 4000

/** What {@link createTestApp} takes. */
export interface TestAppOptions {
  /** Makes what the test needs in the database: SQL of any number of statements, or a function. Default: nothing. */
  readonly setup?: string | ((t: TestApp) => unknown) | undefined
  /** What stands in for resources, by their names, such as fakes. Default: each as the application builds it. */
  readonly resources?: Readonly<Record<string, ResourceReplacement>> | undefined
  /**
   * What to do about rows that a job or producer writes, in a transaction of its own, to a table of yours that its effects do not name as
   * `write:table` or `write:schema.table`: `throw` an `UndeclaredEffectError` where it would commit, `report` it in
   * `undeclaredWrites`, or `ignore` it. Default: `report`.
   */
  readonly undeclaredWrites?: 'throw' | 'report' | 'ignore' | undefined
}

/** @internal What the enumeration of crash points needs beside. */
export interface TestAppHooks {
  readonly reached?: TestWorkerOptions['reached']
  /**
   * Jobs run without their timeout: its timer would go off, and abort the signal, in an attempt that is long dead. A handler that hangs is
   * ended by the run's own time.
   */
  readonly untimed?: boolean
}

/**
 * An application on a database of its own, in memory, with a clock that a test can move. Jobs run when the test says so, one
 * at a time, by the same statements and rules as in a worker.
 */
export class TestApp {
  /** The application, over the test's database: what producers get. Its `worker()` works too, by the real time. */
  readonly app: App
  readonly clock: TestClock
  /** What jobs and producers wrote without declaring it, in order. */
  readonly undeclaredWrites: readonly UndeclaredWrite[]
  readonly #resources: { close(): Promise<void> }[] = []
  readonly #database: TestDatabase
  readonly #hooks: TestAppHooks
  readonly #jobs: ReadonlyMap<string, AnyJob>
  #worker: TestWorker

  /** @internal Use {@link createTestApp}. */
  constructor(app: App, database: TestDatabase, hooks: TestAppHooks, writes: readonly UndeclaredWrite[]) {
    this.app = app
    this.undeclaredWrites = writes
    this.clock = database.clock
    this.#database = database
    this.#hooks = hooks
    const { jobs } = app.composition
    this.#jobs = hooks.untimed
      ? new Map([...jobs].map(([name, job]) => [name, { ...job, timeoutMs: undefined }]))
      : jobs
    this.#worker = this.#newWorker()
  }

  /** As `app.enqueue`. @throws What `app.enqueue` throws. */
  async enqueue<J extends AnyJob>(
    job: J,
    input: JobInput<J>,
    options?: EnqueueOptions,
  ): Promise<EnqueueAnswer> {
    return await this.app.enqueue(job, input, options)
  }

  /**
   * Runs a statement with `$1` placeholders on the test's database, as PGlite does.
   *
   * @returns Its rows. @throws What PGlite throws.
   */
  async query<R = Record<string, unknown>>(text: string, values: readonly unknown[] = []): Promise<R[]> {
    return (await this.#database.instance.query(text, [...values])).rows as R[]
  }

  /** Runs SQL of any number of statements, without parameters. @throws What PGlite throws. */
  async execute(sql: string): Promise<void> {
    await this.#database.instance.exec(sql)
  }

  /**
   * Runs the next due job to the end of one attempt, as a worker would.
   *
   * @param options.timeoutMs How long the handler may take, in real milliseconds. Default: 4,000.
   * @returns What became of it; `undefined` if no job is due.
   * @throws {DrainError} The handler did not end in time.
   */
  async runNext(options: { readonly timeoutMs?: number } = {}): Promise<JobEnd | undefined> {
    const timeoutMs = requireCount('timeoutMs', options.timeoutMs ?? TIMEOUT_MS)
    try {
      return await this.#worker.runNext(timeoutMs)
    } catch (error) {
      if (!(error instanceof AttemptStuck)) throw error
      const jobs = [{ id: error.claimed.id, name: error.claimed.name ?? '' }]
      throw new DrainError({ reason: 'deadline', ran: 0, limit: timeoutMs, jobs }, { cause: error })
    }
  }

  /**
   * Runs jobs, and the jobs that they enqueue, until none is due; with `advance`, until none is scheduled either. Never
   * hangs. Safe to repeat.
   *
   * @returns What was run, by what became of it.
   * @throws {DrainError} `maxJobs` or `timeoutMs` was reached; names what still ran or was due.
   * @throws {InvalidArgumentError} An option is out of range.
   */
  async drain(options: DrainOptions = {}): Promise<DrainReport> {
    const { advance = false } = options
    const maxJobs = requireCount('maxJobs', options.maxJobs ?? MAX_JOBS)
    const timeoutMs = requireCount('timeoutMs', options.timeoutMs ?? TIMEOUT_MS)
    const parts = { worker: this.#worker, clock: this.clock, database: this.app.internals.database }
    return await drain(parts, { maxJobs, advance, timeoutMs })
  }

  /** Every job that was enqueued, in order, whatever has become of it. */
  async enqueued(): Promise<readonly EnqueuedJob[]> {
    return await readEnqueued(this.app.internals.database)
  }

  /**
   * Expects that `job` was enqueued, whatever has become of it since.
   *
   * @returns The jobs that are meant.
   * @throws {AssertionError} There are none, or not `times` of them; lists what was enqueued instead.
   */
  async expectEnqueued<J extends AnyJob>(
    job: J,
    options: EnqueuedOptions<JobInput<J>> = {},
  ): Promise<readonly EnqueuedJob<JobInput<J>>[]> {
    return await expectEnqueued(this.app.internals.database, job, options)
  }

  /** @internal The process of the worker is gone, and another one takes its place. */
  replaceWorker(): void {
    this.#worker = this.#newWorker()
  }

  /** Ends the test: its database goes to the next one. Safe to repeat. */
  async close(): Promise<void> {
    if (this.#database.instance.isEnded) return
    for (const resources of this.#resources) await resources.close()
    await this.app.close()
    this.#database.release()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close()
  }

  #newWorker(): TestWorker {
    const { composition, internals } = this.app
    const { driver, database, events, services } = internals
    const base = services()
    this.#resources.push(base.resources)
    return new TestWorker({
      name: `test on ${hostname()}`,
      app: composition.name,
      version,
      driver,
      database,
      events,
      queues: [...composition.queues.keys()],
      jobs: this.#jobs,
      leaseMs: composition.leaseMs,
      services: (_, scope) => attemptServices(base, scope),
      reached: this.#hooks.reached,
    })
  }
}

function requireCount(field: string, value: number): number {
  if (typeof value === 'number' && value >= 1) return value
  throw new InvalidArgumentError({ field, problem: `must be a number of at least 1, not ${value}` })
}

/**
 * Makes an application for one test: the jobs, queues and settings of `app`, on a database of its own in memory. No server is
 * needed, and nothing reaches the database that `app` names. Tests may run side by side, each with its own.
 *
 * The first one of a process starts an embedded PostgreSQL, which takes a second or two; each further one gets it emptied.
 *
 * @returns The test's application; `await using` ends it.
 * @throws {CompositionError} PGlite is not installed: `npm i --save-dev @electric-sql/pglite`.
 * @throws {UnavailableError} PGlite could not start. What `setup` and `defineApp` throw.
 *
 * @example
 * await using t = await createTestApp(app)
 * await t.enqueue(sendConfirmation, { orderId: '42' })
 * const { completed } = await t.drain()
 */
export async function createTestApp(app: App, options: TestAppOptions = {}): Promise<TestApp> {
  return await openTestApp(app, options, {})
}

/** {@link createTestApp}, watched. */
export async function openTestApp(app: App, options: TestAppOptions, hooks: TestAppHooks): Promise<TestApp> {
  const { maxConnections: _, pooler: __, ...given } = app.internals.options
  const { setup, undeclaredWrites = 'report' } = options
  const database = await takeDatabase(app.composition.schema)
  try {
    const resources = { ...given.resources, ...options.resources }
    const tested = new WatchedApp({ ...given, resources, database: database.instance })
    await tested.internals.register()
    const writes: UndeclaredWrite[] = []
    const t = new TestApp(tested, database, hooks, writes)
    if (typeof setup === 'string') await t.execute(setup)
    else await setup?.(t)
    if (undeclaredWrites !== 'ignore') {
      database.instance.watch = watchWrites(app.composition.schema, (write, declared) => {
        writes.push(write)
        if (undeclaredWrites === 'throw') throw new UndeclaredEffectError({ ...write, declared })
      })
    }
    return t
  } catch (error) {
    database.release()
    throw error
  }
}

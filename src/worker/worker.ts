import { checkNumber } from '../base/check.ts'
import { monotonicMs } from '../base/clock.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import type { EventHub } from '../base/events.ts'
import { limits } from '../base/limits.ts'
import type { Driver } from '../driver/driver.ts'
import type { Database } from '../driver/operation.ts'
import type { AnyJob } from '../jobs/define-job.ts'
import type { ContextServices } from './handler-context.ts'
import { LoopWatch } from './heartbeat.ts'
import { Lives } from './lives.ts'
import { type Loops, openSessions, startLoops } from './loops.ts'
import { LowWater } from './low-water.ts'
import { reportCommitted } from './report.ts'
import { Runner } from './runner.ts'
import { WakeUp } from './wake-up.ts'

export interface WorkerDependencies {
  readonly driver: Driver
  readonly schema: string
  readonly prepare: boolean
  readonly channel: string
  readonly appName: string
  readonly version: string
  readonly events: EventHub
  readonly services: ContextServices
  readonly jobs: ReadonlyMap<string, AnyJob>
  /** Checked before anything is claimed; throws if this release cannot work with the schema. */
  readonly prepareSchema: () => Promise<void>
  readonly upkeep: () => Promise<void>
  readonly onStopped: (worker: Worker) => void
}

export interface WorkerSettings {
  /** A label for people; has no part in who owns what. */
  readonly name: string
  readonly queues: readonly { readonly name: string; readonly concurrency: number }[]
  readonly leaseMs: number
  readonly maxPollMs: number
  readonly shutdownMs: number
  readonly shutdownGraceMs: number
  readonly endProcessWhenStuck: boolean
}

/** Of a pool of the user's: for claims, maintenance, heartbeats and listening. With none left all would wait for ever. */
const KEPT_CONNECTIONS = 4

/**
 * A worker: claims jobs of its queues, runs them, records what came of them. Its parts: {@link Lives} keep its
 * leases, {@link Runner} has its attempts, {@link WakeUp} tells when to look, and its {@link Loops} talk with the queue and
 * do what any worker may do for all.
 *
 * Modes: *new*, *running* (from `start`), *stopping* (claims nothing more, lets jobs end, then aborts them, then
 * hands back what is left), *stopped*. `start` and `stop` may be called in any order and any number of times.
 */
export class Worker {
  readonly #deps: WorkerDependencies
  readonly #settings: WorkerSettings
  readonly #queues: readonly string[]
  readonly #database: Database
  readonly #lives: Lives
  readonly #runner: Runner
  readonly #wakeUp: WakeUp
  readonly #lowWater = new LowWater()
  readonly #hardStop = new AbortController()
  readonly #background = new AbortController()
  #loops: Loops | undefined
  #isStopping = false
  /** When a stop aborts what still runs; a second call of `stop` may bring it nearer. */
  #abortAtMs = Number.POSITIVE_INFINITY
  #started: Promise<void> | undefined
  #stopped: Promise<void> | undefined

  /** @internal Use `app.worker()`. */
  constructor(deps: WorkerDependencies, settings: WorkerSettings) {
    const { driver, events, jobs, services } = deps
    const loopWatch = new LoopWatch()
    this.#deps = deps
    this.#settings = settings
    this.#queues = settings.queues.map(({ name }) => name)
    this.#database = { queryable: driver, schema: deps.schema, prepare: deps.prepare }
    this.#runner = new Runner({
      queues: settings.queues,
      jobs,
      services,
      events,
      loopWatch,
      onChange: () => this.#wakeUp.exchange.wake(),
      onCommitted: (job, outcome, durationMs) => {
        this.#loops?.traffic.leases.settled(job.lease, 1, false)
        reportCommitted(events, job, outcome, durationMs)
      },
      onSuspectEnded: (queue) => this.#wakeUp.look(queue),
    })
    this.#lives = new Lives({
      driver,
      database: this.#database,
      registration: {
        name: settings.name,
        app: deps.appName,
        version: deps.version,
        leaseMs: settings.leaseMs,
        queues: settings.queues,
        jobs: [...jobs.values()].map(({ name, contract }) => ({ name, contract })),
      },
      endProcessWhenStuck: settings.endProcessWhenStuck,
      loopWatch,
      hardDeadlineMs: () => this.#runner.hardDeadlineMs,
      onCancelled: (cancelled) => this.#runner.cancel(cancelled),
      onLost: (workerId, why) => this.#lost(workerId, why),
      onReborn: () => this.#wakeUp.look(),
      onError: (during, error, retryInMs) => this.#failed(during, error, retryInMs),
      onBlocked: (blockedMs) => events.emit('loop.blocked', { blockedMs }),
    })
    this.#wakeUp = new WakeUp({
      queues: this.#queues,
      maxPollMs: settings.maxPollMs,
      events,
      queueOf: (signal) => this.#lives.queueOf(signal),
      workerId: () => this.#lives.id,
      lookForCancelled: () => void this.#lives.lookForCancelled(),
      lowWater: this.#lowWater,
    })
  }

  /** Id of the present life in `holdfast.worker`; 0 before the start, and between two lives. */
  get id(): bigint {
    return this.#lives.id
  }

  /** Jobs executing now. */
  get running(): number {
    return this.#runner.running
  }

  /**
   * Starts claiming. Resolves once the worker is registered and its loops run; a second call is the same start.
   *
   * @throws {SchemaVersionError} The schema is missing, too old, or changed by a newer release in a way that this
   *   one cannot work with. Nothing was claimed.
   * @throws {InvalidArgumentError} `database` is a pool of yours that does not tell how it connects and has fewer than 5
   *   connections: a worker keeps 4 of them. Beside a pool that tells, it opens its own.
   * @throws {UnavailableError} The database cannot be reached. Call again.
   */
  async start(): Promise<void> {
    if (this.#isStopping) return
    this.#started ??= this.#begin()
    try {
      await this.#started
    } catch (error) {
      this.#started = undefined
      throw error
    }
  }

  /**
   * Stops in two stages: claims nothing more and lets running jobs end for `shutdownMs` (default 15 s); then aborts
   * their signals and waits `shutdownGraceMs` (default 5 s). What still runs is handed back: it starts elsewhere at
   * once, and the attempt is not counted. Resolves when all is recorded, and no timer, thread or connection of
   * the worker is left; a handler that ignores its signal may still be there, on its own. A database that does
   * not answer delays this by the deadline of a statement, 30 s. Safe to repeat.
   *
   * @param options.shutdownMs Lets jobs end for so many milliseconds instead, 0 to 24 h. A stop under way is
   *   shortened by a second call, never lengthened: 0 aborts what runs at once.
   * @throws {InvalidArgumentError} `shutdownMs` is out of range. The worker goes on.
   */
  async stop(options: { readonly shutdownMs?: number } = {}): Promise<void> {
    const { shutdownMs = this.#settings.shutdownMs } = options
    const abortAtMs = monotonicMs() + checkNumber('shutdownMs', shutdownMs, limits.shutdownMs)
    this.#abortAtMs = Math.min(this.#abortAtMs, abortAtMs)
    this.#stopped ??= this.#end()
    await this.#stopped
  }

  async #begin(): Promise<void> {
    const { driver, events, channel, prepareSchema } = this.#deps
    if (driver.poolLimit <= KEPT_CONNECTIONS) {
      throw new InvalidArgumentError({
        field: 'database',
        problem: `is a pool of ${driver.poolLimit}; a worker keeps ${KEPT_CONNECTIONS} of its connections for itself, so it needs more, or an address`,
      })
    }
    await prepareSchema()
    await this.#lives.begin()
    const sessions = await openSessions(driver)
    this.#wakeUp.listen(driver, channel)
    this.#loops = startLoops({
      deps: this.#deps,
      database: this.#database,
      sessions,
      queues: this.#queues,
      lives: this.#lives,
      runner: this.#runner,
      wakeUp: this.#wakeUp,
      lowWater: this.#lowWater,
      isStopping: () => this.#isStopping,
      onError: (during, error, retryInMs) => this.#failed(during, error, retryInMs),
      // Claims nothing more.
      onUnusableSchema: () => void this.stop(),
      hardStop: this.#hardStop.signal,
      background: this.#background.signal,
    })
    events.emit('worker.started', { workerId: this.#lives.id, queues: this.#queues })
  }

  async #end(): Promise<void> {
    const { events, onStopped } = this.#deps
    this.#isStopping = true
    // A start under way is let through, and then stopped.
    await this.#started?.catch(() => undefined)
    if (this.#loops === undefined) return
    const { traffic, ended, release } = this.#loops
    this.#runner.handBackBuffers()
    this.#wakeUp.exchange.wake()
    await this.#runner.drain(() => this.#abortAtMs, this.#settings.shutdownGraceMs)
    // Everything has an outcome now; recording it is tried for as long as the leases may last.
    const giveUp = setTimeout(() => this.#hardStop.abort(), this.#settings.leaseMs)
    this.#wakeUp.exchange.wake()
    this.#background.abort()
    await Promise.all([ended, this.#lives.settle()])
    clearTimeout(giveUp)
    await traffic.leases
      .closeFinished(this.#database)
      .then(async () => await traffic.leases.releaseIfUnsure())
      .catch((error: unknown) => this.#failed('ending leases', error, 0))
    await this.#deps.services.resources.close()
    const workerId = this.#lives.id
    await this.#lives.end()
    await Promise.all([this.#wakeUp.close(), release()])
    events.emit('worker.stopped', { workerId })
    onStopped(this)
  }

  #lost(workerId: bigint, why: string): void {
    this.#loops?.traffic.leases.forget()
    const jobs = this.#runner.lose(workerId)
    this.#deps.events.emit('lease.lost', { workerId, jobs, why })
  }

  #failed(during: string, error: unknown, retryInMs: number): void {
    this.#deps.events.emit('worker.error', { during, error, retryInMs })
  }
}

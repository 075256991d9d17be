import { checkNumber } from '../base/check.ts'
import { monotonicMs } from '../base/clock.ts'
import { InvalidArgumentError, SchemaVersionError } from '../base/errors.ts'
import type { EventHub } from '../base/events.ts'
import { limits } from '../base/limits.ts'
import { Wakeup } from '../base/wakeup.ts'
import type { Driver, Session } from '../driver/driver.ts'
import type { Database } from '../driver/operation.ts'
import type { AnyJob } from '../jobs/define-job.ts'
import type { ClaimedJob } from './claimed-job.ts'
import { runExchange } from './exchange.ts'
import type { ContextServices } from './handler-context.ts'
import { LoopWatch } from './heartbeat.ts'
import { Lives } from './lives.ts'
import { LowWater } from './low-water.ts'
import { runLeaseCloser } from './maintenance/lease-closer.ts'
import { runMaintenance } from './maintenance/maintenance.ts'
import { runSweeper } from './maintenance/sweeper.ts'
import { reportSettlement } from './report.ts'
import { Runner } from './runner.ts'
import { Traffic } from './traffic.ts'
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

const ERROR_DELAY_MAX_MS = 5000
/** Of a pool of the user's: for claims, maintenance, heartbeats and listening. With none left all would wait for ever. */
const KEPT_CONNECTIONS = 4

/**
 * A worker: claims jobs of its queues, runs them, records what came of them. Its parts: {@link Lives} keep its
 * leases, {@link Runner} has its attempts, {@link Traffic} and `runExchange` talk with the queue, {@link WakeUp}
 * tells when, `runMaintenance` does what any worker may do for all.
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
  /** Woken when leases were finished in parts. */
  readonly #finished = new Wakeup()
  readonly #hardStop = new AbortController()
  readonly #background = new AbortController()
  #parts:
    | { readonly traffic: Traffic; readonly sessions: readonly Session[]; readonly loops: Promise<unknown> }
    | undefined
  #sawParked = false
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
    const session = await driver.session()
    // Opened when bulk work first wants it.
    const bulkSession =
      driver.singleConnection || driver.poolLimit < Number.POSITIVE_INFINITY
        ? undefined
        : await driver.session()
    const maintenanceSession = await driver.session()
    const traffic = this.#traffic({ ...this.#database, queryable: session })
    this.#wakeUp.listen(driver, channel)
    const background = { ...this.#database, queryable: maintenanceSession }
    const loops = Promise.all([
      this.#exchange(traffic, bulkSession && { ...this.#database, queryable: bulkSession }),
      this.#maintenance(background),
      this.#sweep(background),
      this.#closeLeases(traffic, background),
    ])
    const sessions = [session, maintenanceSession, ...(bulkSession ? [bulkSession] : [])]
    this.#parts = { traffic, sessions, loops }
    events.emit('worker.started', { workerId: this.#lives.id, queues: this.#queues })
  }

  async #end(): Promise<void> {
    const { events, onStopped } = this.#deps
    this.#isStopping = true
    // A start under way is let through, and then stopped.
    await this.#started?.catch(() => undefined)
    if (this.#parts === undefined) return
    const { traffic, sessions, loops } = this.#parts
    this.#runner.handBackBuffers()
    this.#wakeUp.exchange.wake()
    await this.#runner.drain(() => this.#abortAtMs, this.#settings.shutdownGraceMs)
    // Everything has an outcome now; recording it is tried for as long as the leases may last.
    const giveUp = setTimeout(() => this.#hardStop.abort(), this.#settings.leaseMs)
    this.#wakeUp.exchange.wake()
    this.#background.abort()
    await Promise.all([loops, this.#lives.settle()])
    clearTimeout(giveUp)
    await traffic
      .closeFinished(this.#database)
      .then(async () => await traffic.releaseIfUnsure())
      .catch((error: unknown) => this.#failed('ending leases', error, 0))
    const workerId = this.#lives.id
    await this.#lives.end()
    await Promise.all([this.#wakeUp.close(), ...sessions.map(async (session) => await session.release())])
    events.emit('worker.stopped', { workerId })
    onStopped(this)
  }

  #traffic(database: Database): Traffic {
    const { events } = this.#deps
    return new Traffic({
      database,
      queues: this.#queues,
      events,
      lowWater: this.#lowWater,
      workerId: () => this.#lives.id,
      mayTakeSuspect: () => this.#runner.mayTakeSuspect,
      onSettled: (settlement, answer) => {
        // A retry or snooze may be due before the next look at what is scheduled.
        if (settlement.outcome.to === 'scheduled') this.#wakeUp.maintenance.wake()
        reportSettlement(events, settlement, answer)
      },
      onFinished: () => this.#finished.wake(),
    })
  }

  async #exchange(traffic: Traffic, bulk: Database | undefined): Promise<void> {
    await runExchange(
      {
        slots: this.#runner.slots,
        outbox: this.#runner.outbox,
        pace: this.#wakeUp.pace,
        wakeup: this.#wakeUp.exchange,
        trade: async (settle, wants) => await traffic.trade(settle, wants),
        sawParked: () => this.#sawParked,
        claimParked: async () => await this.#claimParked(traffic),
        settleOthers: async (batch) => await traffic.settleOthers(batch),
        settleBeside: bulk && (async (batch) => await traffic.settleBeside(bulk, batch)),
        setWaiting: async (waiting) => await traffic.setWaiting(waiting),
        life: () => this.#lives.id,
        handBack: (jobs) => this.#runner.handBack(jobs, this.#isStopping ? 'stopping' : 'busy'),
        onError: (error, retryInMs) => this.#failed('claiming and settling', error, retryInMs),
        retryDelayMs: (failures) =>
          Math.min(ERROR_DELAY_MAX_MS, 50 * 2 ** Math.min(failures, 10)) * (0.5 + Math.random() / 2),
        isStopping: () => this.#isStopping,
      },
      this.#hardStop.signal,
    )
  }

  async #maintenance(database: Database): Promise<void> {
    const { driver, events, jobs, upkeep } = this.#deps
    await runMaintenance(
      {
        driver,
        database,
        events,
        wakeup: this.#wakeUp.maintenance,
        workerId: () => this.#lives.id,
        jobNames: [...jobs.keys()],
        // Under dead rows this look would walk over them all; the sweeper looks then, by windows.
        queues: () => (this.#lowWater.isMarked ? [] : this.#queues),
        maxPollMs: () => this.#wakeUp.pollMs,
        onAvailable: (queues) => {
          for (const queue of queues) this.#wakeUp.look(queue)
        },
        onParked: () => {
          this.#sawParked = true
          this.#wakeUp.look()
        },
        upkeep,
        onError: (during, error, retryInMs) => {
          this.#failed(during, error, retryInMs)
          // The schema is gone, or not one that this release may touch: claim nothing more.
          if (error instanceof SchemaVersionError) void this.stop()
        },
      },
      this.#background.signal,
    )
  }

  async #sweep(database: Database): Promise<void> {
    await runSweeper(
      {
        database,
        queues: this.#queues,
        lowWater: this.#lowWater,
        onFound: (queue) => this.#wakeUp.look(queue),
        onError: (error) => this.#failed('sweeping', error, 1000),
      },
      this.#background.signal,
    )
  }

  async #closeLeases(traffic: Traffic, database: Database): Promise<void> {
    await runLeaseCloser(
      {
        hasFinished: () => traffic.hasFinished,
        closeFinished: async () => await traffic.closeFinished(database),
        wakeup: this.#finished,
        onError: (error, retryInMs) => this.#failed('ending leases', error, retryInMs),
      },
      this.#background.signal,
    )
  }

  async #claimParked(traffic: Traffic): Promise<readonly ClaimedJob[]> {
    const free = Math.min(...this.#runner.slots.map((slots) => slots.free))
    if (!this.#sawParked || free === 0 || this.#lives.id === 0n) return []
    this.#sawParked = false
    const jobs = [...this.#deps.jobs.values()]
    return await traffic.claimParked(
      free,
      jobs.map((job) => job.name),
      jobs.map((job) => job.contract),
    )
  }

  #lost(workerId: bigint, why: string): void {
    this.#parts?.traffic.forget()
    const jobs = this.#runner.lose(workerId)
    this.#deps.events.emit('lease.lost', { workerId, jobs, why })
  }

  #failed(during: string, error: unknown, retryInMs: number): void {
    this.#deps.events.emit('worker.error', { during, error, retryInMs })
  }
}

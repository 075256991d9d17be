import { checkNumber } from '../base/check.ts'
import { monotonicMs } from '../base/clock.ts'
import {
  InvalidArgumentError,
  JobCancelledError,
  LeaseLostError,
  SchemaVersionError,
  ShutdownError,
} from '../base/errors.ts'
import type { EventHub } from '../base/events.ts'
import { limits } from '../base/limits.ts'
import { sleep } from '../base/sleep.ts'
import { Wakeup } from '../base/wakeup.ts'
import type { Driver, Listener, Session } from '../driver/driver.ts'
import { type Database, run, runOne } from '../driver/operation.ts'
import type { AnyJob } from '../jobs/define-job.ts'
import { registerWorker } from '../jobs/sql/register-worker.ts'
import { removeWorker } from '../jobs/sql/remove-worker.ts'
import { renewLeases } from '../jobs/sql/renew-leases.ts'
import type { ClaimedJob } from './claimed-job.ts'
import { runExchange } from './exchange.ts'
import { type Attempt, type AttemptEnd, startAttempt } from './executor.ts'
import type { ContextServices } from './handler-context.ts'
import { LoopWatch, runHeartbeat } from './heartbeat.ts'
import type { CancelledJob } from './lease-keeper.ts'
import { LowWater } from './low-water.ts'
import { runMaintenance } from './maintenance/maintenance.ts'
import { runSweeper } from './maintenance/sweeper.ts'
import { Outbox, type Settlement } from './outbox.ts'
import { Pace } from './pace.ts'
import { reportSettlement } from './report.ts'
import { Slots } from './slots.ts'
import { factsOf, Traffic } from './traffic.ts'

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

/** Without a listener jobs are found by polling alone: more often, then. */
const POLL_WITHOUT_LISTENER_MS = 1000
const ERROR_DELAY_MAX_MS = 5000
/** Of a pool of the user's: for claims, maintenance, heartbeats and listening. With none left all would wait for ever. */
const KEPT_CONNECTIONS = 4

/**
 * A worker: claims jobs of its queues, runs them, records what came of them.
 *
 * Modes: *new*, *running* (from `start`), *stopping* (claims nothing more, lets jobs end, then aborts them, then
 * hands back what is left), *stopped*. `start` and `stop` may be called in any order and any number of times.
 *
 * A worker has lives. In each it is a row in `worker`, whose heartbeat keeps all its leases. When they are lost
 * (declared dead, or the database out of reach for a whole lease) every attempt of that life is told so and can
 * record nothing more; the worker goes on in a new life, under a new id.
 */
export class Worker {
  readonly #deps: WorkerDependencies
  readonly #settings: WorkerSettings
  readonly #wakeup = new Wakeup()
  readonly #maintenanceWakeup = new Wakeup()
  readonly #outbox = new Outbox()
  readonly #lowWater = new LowWater()
  readonly #attempts = new Set<Attempt>()
  readonly #slots: readonly Slots[]
  readonly #bySlot: ReadonlyMap<string, Slots>
  readonly #pace: Pace
  readonly #loopWatch = new LoopWatch()
  readonly #hardStop = new AbortController()
  readonly #background = new AbortController()
  #database: Database
  #session: Session | undefined
  #maintenanceSession: Session | undefined
  #traffic: Traffic | undefined
  #listener: Listener | undefined
  #workerId = 0n
  #signals = new Map<string, string>()
  #heartbeat: { readonly stop: AbortController; readonly done: Promise<void> } | undefined
  #suspects = 0
  #sawParked = false
  #isStopping = false
  /** When a stop aborts what still runs; a second call of `stop` may bring it nearer. */
  #abortAtMs = Number.POSITIVE_INFINITY
  #started: Promise<void> | undefined
  #stopped: Promise<void> | undefined
  #loops: Promise<unknown> | undefined
  /** A new life that begins; a stop waits for it, since its row and its heartbeat would outlive the worker. */
  #rebirth: Promise<void> | undefined
  #listenerDownAtMs: number | undefined

  constructor(deps: WorkerDependencies, settings: WorkerSettings) {
    this.#deps = deps
    this.#settings = settings
    this.#database = { queryable: deps.driver, schema: deps.schema, prepare: deps.prepare }
    this.#slots = settings.queues.map(
      ({ name, concurrency }) => new Slots(name, concurrency, (job) => this.#run(job)),
    )
    this.#bySlot = new Map(this.#slots.map((slots) => [slots.queue, slots]))
    this.#pace = new Pace(
      settings.queues.map(({ name }) => name),
      settings.maxPollMs,
    )
  }

  /** Id of the present life in `holdfast.worker`; 0 before the start, and between two lives. */
  get id(): bigint {
    return this.#workerId
  }

  /** Jobs executing now. */
  get running(): number {
    return this.#attempts.size
  }

  /**
   * Starts claiming. Resolves once the worker is registered and its loops run; a second call is the same start.
   *
   * @throws {SchemaVersionError} The schema is missing, too old, or changed by a newer release in a way that this
   *   one cannot work with. Nothing was claimed.
   * @throws {InvalidArgumentError} `database` is a pool of yours with fewer than 5 connections: a worker keeps 4.
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
   * the worker is left; a handler that ignores its signal may still be there, on its own. Safe to repeat.
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
    const { driver, events, channel } = this.#deps
    if (driver.poolLimit <= KEPT_CONNECTIONS) {
      throw new InvalidArgumentError({
        field: 'database',
        problem: `is a pool of ${driver.poolLimit}; a worker keeps ${KEPT_CONNECTIONS} of its connections for itself, so it needs more, or an address`,
      })
    }
    await this.#deps.prepareSchema()
    await this.#register()
    this.#session = await driver.session()
    this.#maintenanceSession = await driver.session()
    this.#traffic = new Traffic({
      database: { ...this.#database, queryable: this.#session },
      queues: this.#settings.queues.map(({ name }) => name),
      events,
      lowWater: this.#lowWater,
      workerId: () => this.#workerId,
      mayTakeSuspect: () => this.#suspects === 0,
      onSettled: (settlement, answer) => {
        // A retry or snooze may be due before the next look at what is scheduled.
        if (settlement.outcome.to === 'scheduled') this.#maintenanceWakeup.wake()
        reportSettlement(events, settlement, answer)
      },
    })
    this.#listener = driver.listen(channel, {
      onNotify: (payload) => this.#notified(payload),
      onUp: () => this.#listening(true),
      onDown: (error) => this.#listening(false, error),
    })
    if (!this.#listener.up)
      this.#pace.maxPollMs = Math.min(POLL_WITHOUT_LISTENER_MS, this.#settings.maxPollMs)
    this.#loops = Promise.all([
      this.#exchange(this.#traffic),
      this.#maintenance(this.#maintenanceSession),
      this.#sweep(this.#maintenanceSession),
    ])
    events.emit('worker.started', { workerId: this.#workerId, queues: this.#slots.map((s) => s.queue) })
  }

  async #end(): Promise<void> {
    this.#isStopping = true
    // A start under way is let through, and then stopped.
    await this.#started?.catch(() => undefined)
    if (this.#loops === undefined) return
    for (const slots of this.#slots) this.#handBack(slots.takeBuffer(), 'stopping')
    this.#wakeup.wake()
    if (!(await this.#emptyBy(() => this.#abortAtMs))) {
      for (const attempt of this.#attempts) attempt.abort(new ShutdownError())
      const handBackAtMs = monotonicMs() + this.#settings.shutdownGraceMs
      await this.#emptyBy(() => handBackAtMs)
      for (const attempt of this.#attempts) attempt.interrupt()
    }
    // Everything has an outcome now; recording it is tried for as long as the leases may last.
    const giveUp = setTimeout(() => this.#hardStop.abort(), this.#settings.leaseMs)
    this.#wakeup.wake()
    this.#background.abort()
    // A life that is just beginning has nothing to keep.
    if (this.#workerId === 0n) this.#heartbeat?.stop.abort()
    await Promise.all([this.#loops, this.#rebirth])
    clearTimeout(giveUp)
    await this.#traffic
      ?.releaseIfUnsure()
      .catch((error: unknown) => this.#failed('handing back what a lost answer hid', error, 0))
    await run(this.#database, removeWorker, { workerId: this.#workerId }).catch((error: unknown) =>
      this.#failed('removing the worker', error, 0),
    )
    this.#heartbeat?.stop.abort()
    await Promise.all([
      this.#heartbeat?.done,
      this.#listener?.close(),
      this.#session?.release(),
      this.#maintenanceSession?.release(),
    ])
    this.#deps.events.emit('worker.stopped', { workerId: this.#workerId })
    this.#deps.onStopped(this)
  }

  async #register(): Promise<void> {
    const { jobs, appName, version } = this.#deps
    const { name, queues, leaseMs } = this.#settings
    const { id, signals } = await runOne(this.#database, registerWorker, {
      name,
      app: appName,
      version,
      leaseMs,
      queues: JSON.stringify(queues),
      jobs: JSON.stringify([...jobs.values()].map((job) => ({ name: job.name, contract: job.contract }))),
      queueNames: queues.map((queue) => queue.name),
    })
    // A thread takes its time to start, perhaps more than a lease: nothing is claimed before leases are kept.
    await this.#startHeartbeat(id)
    this.#workerId = id
    this.#signals = new Map(Object.entries(signals as Record<string, string>))
  }

  /** Resolves when the first renewal was answered; rejects if the life is over before. */
  async #startHeartbeat(workerId: bigint): Promise<void> {
    const stop = new AbortController()
    const beating = withResolvers()
    const done = runHeartbeat(
      {
        driver: this.#deps.driver,
        database: this.#database,
        workerId,
        leaseMs: this.#settings.leaseMs,
        endProcessWhenStuck: this.#settings.endProcessWhenStuck,
        loopWatch: this.#loopWatch,
        hardDeadlineMs: () => Math.min(...[...this.#attempts].map((attempt) => attempt.hardDeadlineMs)),
        onCancelled: (cancelled) => this.#cancelled(cancelled),
        onBeating: beating.resolve,
        onLost: (why) => {
          beating.reject(new Error(why))
          this.#lost(workerId, why)
        },
        onError: (error, retryInMs) => this.#failed('heartbeat', error, retryInMs),
        onBlocked: (blockedMs) => this.#deps.events.emit('loop.blocked', { blockedMs }),
      },
      stop.signal,
    )
    this.#heartbeat = { stop, done }
    void done.then(() => beating.reject(new Error('the heartbeat ended before it began')), beating.reject)
    // The thread may take longer than a lease to start; nothing is held yet, and its own first renewal tells the truth.
    const bridge = setInterval(() => {
      run(this.#database, renewLeases, { workerId }).catch(() => undefined)
    }, this.#settings.leaseMs / 3)
    try {
      await beating.promise
    } finally {
      clearInterval(bridge)
    }
  }

  async #exchange(traffic: Traffic): Promise<void> {
    await runExchange(
      {
        slots: this.#slots,
        outbox: this.#outbox,
        pace: this.#pace,
        wakeup: this.#wakeup,
        trade: async (settle, wants) => await traffic.trade(settle, wants),
        claimParked: async () => await this.#claimParked(traffic),
        settleOthers: async (batch) => await traffic.settleOthers(batch),
        setWaiting: async (waiting) => await traffic.setWaiting(waiting),
        life: () => this.#workerId,
        handBack: (jobs) => this.#handBack(jobs, this.#isStopping ? 'stopping' : 'busy'),
        onError: (error, retryInMs) => this.#failed('claiming and settling', error, retryInMs),
        retryDelayMs: (failures) =>
          Math.min(ERROR_DELAY_MAX_MS, 50 * 2 ** Math.min(failures, 10)) * (0.5 + Math.random() / 2),
        isStopping: () => this.#isStopping,
      },
      this.#hardStop.signal,
    )
  }

  async #maintenance(session: Session): Promise<void> {
    const { driver, events, jobs, upkeep } = this.#deps
    await runMaintenance(
      {
        driver,
        database: { ...this.#database, queryable: session },
        events,
        wakeup: this.#maintenanceWakeup,
        workerId: () => this.#workerId,
        jobNames: [...jobs.keys()],
        // Under dead rows this look would walk over them all; the sweeper looks then, by windows.
        queues: () => (this.#lowWater.isMarked ? [] : this.#settings.queues.map(({ name }) => name)),
        maxPollMs: () =>
          this.#listener?.up
            ? this.#settings.maxPollMs
            : Math.min(POLL_WITHOUT_LISTENER_MS, this.#settings.maxPollMs),
        onAvailable: (queues) => {
          for (const queue of queues) this.#pace.wake(queue)
          this.#wakeup.wake()
        },
        onParked: () => {
          this.#sawParked = true
          this.#pace.wake()
          this.#wakeup.wake()
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

  async #sweep(session: Session): Promise<void> {
    await runSweeper(
      {
        database: { ...this.#database, queryable: session },
        queues: this.#settings.queues.map(({ name }) => name),
        lowWater: this.#lowWater,
        onFound: (queue) => {
          this.#pace.wake(queue)
          this.#wakeup.wake()
        },
        onError: (error) => this.#failed('sweeping', error, 1000),
      },
      this.#background.signal,
    )
  }

  async #claimParked(traffic: Traffic): Promise<readonly ClaimedJob[]> {
    const free = Math.min(...this.#slots.map((slots) => slots.free))
    if (!this.#sawParked || free === 0 || this.#workerId === 0n) return []
    this.#sawParked = false
    const jobs = [...this.#deps.jobs.values()]
    return await traffic.claimParked(
      free,
      jobs.map((job) => job.name),
      jobs.map((job) => job.contract),
    )
  }

  #run(claimed: ClaimedJob): void {
    const { events, jobs } = this.#deps
    if (claimed.care === 2) this.#suspects += 1
    if (events.wants('attempt.started')) events.emit('attempt.started', factsOf(claimed))
    const job = jobs.get(claimed.name ?? '')
    if (job?.timeoutMs !== undefined) this.#loopWatch.starting(job.timeoutMs + job.abortGraceMs)
    this.#attempts.add(startAttempt(claimed, this.#deps, this.#ended))
  }

  /** The next suspect may be waiting, unseen by looks that were not allowed to take it. */
  #suspectEnded({ queue }: ClaimedJob): void {
    this.#suspects -= 1
    this.#pace.wake(queue)
  }

  readonly #ended = (attempt: Attempt, end: AttemptEnd): void => {
    const { claimed } = attempt
    const { events } = this.#deps
    this.#attempts.delete(attempt)
    if (claimed.care === 2) this.#suspectEnded(claimed)
    if (end.abandoned && end.outcome.to !== 'ready') events.emit('handler.abandoned', factsOf(claimed))
    if (end.outcome.to === 'ready') events.emit('jobs.handedBack', { count: 1, why: 'interrupted' })
    this.#settle({ job: claimed, durationMs: end.durationMs, outcome: end.outcome, error: end.error })
    this.#bySlot.get(claimed.queue)?.finished(end.durationMs)
  }

  #settle(settlement: Settlement): void {
    this.#outbox.add(settlement)
    this.#wakeup.wake()
  }

  #handBack(jobs: readonly ClaimedJob[], why: 'busy' | 'stopping'): void {
    if (jobs.length === 0) return
    for (const job of jobs) {
      this.#settle({ job, durationMs: 0, outcome: { to: 'ready', ended: 'handed-back' }, error: undefined })
    }
    this.#deps.events.emit('jobs.handedBack', { count: jobs.length, why })
  }

  #cancelled(jobs: readonly CancelledJob[]): void {
    const reasons = new Map(jobs)
    for (const attempt of this.#attempts) {
      const reason = reasons.get(attempt.claimed.id)
      if (reason !== undefined) attempt.abort(new JobCancelledError({ reason: reason ?? undefined }))
    }
  }

  #lost(workerId: bigint, why: string): void {
    if (workerId !== this.#workerId) return
    const mine = [...this.#attempts].filter((attempt) => attempt.claimed.workerId === workerId)
    this.#deps.events.emit('lease.lost', { workerId, jobs: mine.length, why })
    for (const slots of this.#slots) slots.takeBuffer()
    for (const attempt of mine) {
      const { id, token } = attempt.claimed
      attempt.abort(new LeaseLostError({ jobId: BigInt(id), fencingToken: token }))
    }
    this.#heartbeat?.stop.abort()
    this.#workerId = 0n
    this.#traffic?.forget()
    this.#rebirth = this.#beginNewLife()
  }

  async #beginNewLife(): Promise<void> {
    for (let failures = 1; !this.#isStopping; failures += 1) {
      try {
        await this.#register()
        this.#pace.wake()
        this.#wakeup.wake()
        return
      } catch (error) {
        const delayMs = Math.min(ERROR_DELAY_MAX_MS, 100 * 2 ** failures)
        this.#failed('registering anew', error, delayMs)
        await sleep(delayMs, this.#background.signal)
      }
    }
  }

  #notified(payload: string): void {
    if (payload === 'due') return this.#maintenanceWakeup.wake()
    if (payload === `cancel:${this.#workerId}`) return void this.#lookForCancelled()
    const queue = this.#signals.get(payload)
    if (queue === undefined) return
    this.#pace.wake(queue)
    this.#wakeup.wake()
  }

  async #lookForCancelled(): Promise<void> {
    try {
      const [row] = await run(this.#database, renewLeases, { workerId: this.#workerId })
      this.#cancelled((row?.cancelled ?? []) as readonly CancelledJob[])
    } catch (error) {
      // The next heartbeat brings it.
      this.#failed('looking for cancelled jobs', error, this.#settings.leaseMs / 3)
    }
  }

  #listening(isUp: boolean, error?: unknown): void {
    const { events } = this.#deps
    this.#pace.maxPollMs = isUp
      ? this.#settings.maxPollMs
      : Math.min(POLL_WITHOUT_LISTENER_MS, this.#settings.maxPollMs)
    if (isUp && this.#listenerDownAtMs !== undefined) {
      events.emit('wakeup.restored', { downMs: monotonicMs() - this.#listenerDownAtMs })
      this.#listenerDownAtMs = undefined
    }
    if (!isUp && this.#listenerDownAtMs === undefined) {
      this.#listenerDownAtMs = monotonicMs()
      events.emit('wakeup.degraded', { error })
    }
    // What was announced meanwhile is lost: look.
    this.#pace.wake()
    this.#wakeup.wake()
    this.#maintenanceWakeup.wake()
  }

  async #emptyBy(deadlineMs: () => number): Promise<boolean> {
    while (this.#attempts.size > 0) {
      const leftMs = deadlineMs() - monotonicMs()
      if (leftMs <= 0) break
      await new Promise((resolve) => setTimeout(resolve, Math.min(20, leftMs)))
    }
    return this.#attempts.size === 0
  }

  #failed(during: string, error: unknown, retryInMs: number): void {
    this.#deps.events.emit('worker.error', { during, error, retryInMs })
  }
}

/** `Promise.withResolvers`, which Node 20 lacks. */
function withResolvers(): {
  readonly promise: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: Error) => void
} {
  let resolve: () => void = () => {}
  let reject: (error: Error) => void = () => {}
  const promise = new Promise<void>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}

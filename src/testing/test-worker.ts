import { JobCancelledError } from '../base/errors.ts'
import type { EventHub } from '../base/events.ts'
import { sleep } from '../base/sleep.ts'
import type { Driver } from '../driver/driver.ts'
import { type Database, run, runOne } from '../driver/operation.ts'
import type { AnyJob } from '../jobs/define-job.ts'
import { lookAhead } from '../jobs/sql/look-ahead.ts'
import { promoteJobs } from '../jobs/sql/promote-jobs.ts'
import { registerWorker } from '../jobs/sql/register-worker.ts'
import { renewLeases } from '../jobs/sql/renew-leases.ts'
import type { ClaimedJob } from '../worker/claimed-job.ts'
import { type Attempt, type AttemptEnd, startAttempt } from '../worker/executor.ts'
import type { ContextServices } from '../worker/handler-context.ts'
import type { CancelledJob } from '../worker/lease-keeper.ts'
import { LowWater } from '../worker/low-water.ts'
import { rescueJobs } from '../worker/maintenance/rescuer.ts'
import type { Settlement } from '../worker/outbox.ts'
import { reportCommitted, reportSettlement } from '../worker/report.ts'
import { factsOf, Traffic } from '../worker/traffic.ts'
import { type JobEnd, outcomeOf } from './job-end.ts'
import { Life, runAs, runInScope, type Scope } from './scope.ts'
import { findNextQueue } from './sql/find-next-queue.ts'

export interface TestWorkerOptions {
  readonly name: string
  readonly app: string
  readonly version: string
  readonly driver: Driver
  readonly database: Database
  readonly events: EventHub
  readonly queues: readonly string[]
  readonly jobs: ReadonlyMap<string, AnyJob>
  readonly leaseMs: number
  /** What the handler of an attempt works through. */
  readonly services: (claimed: ClaimedJob, scope: Scope) => ContextServices
  /** Told of each step of each attempt; may let its life end there. */
  readonly reached?:
    | ((step: string, claimed: ClaimedJob, life: Life) => Promise<void> | undefined)
    | undefined
}

/** An attempt that has not ended in time. */
export class AttemptStuck extends Error {
  override readonly name = 'AttemptStuck'
  readonly claimed: ClaimedJob

  constructor(claimed: ClaimedJob) {
    super(`job ${claimed.id} still runs`)
    this.claimed = claimed
  }
}

const BEAT_MS = 50
const PROMOTE_LIMIT = 1000

/**
 * A worker that does one thing at a time, when told: the statements, the executor and the outcomes are those of a real one,
 * without its loops, timers and buffers. Several may share a database; each is a life of its own.
 */
export class TestWorker {
  readonly #options: TestWorkerOptions
  readonly #lowWater = new LowWater()
  #traffic: Traffic
  #answer: 'recorded' | 'refused' | 'cancelled' = 'recorded'
  #id = 0n
  #dueInMs: number | undefined

  constructor(options: TestWorkerOptions) {
    this.#options = options
    this.#traffic = this.#newTraffic()
  }

  /**
   * In how many milliseconds the next scheduled job falls due, as of the last look; none if nothing is scheduled. Not looked up anew: a
   * job that has fallen due meanwhile would be made ready by that, and be taken for none.
   */
  get dueInMs(): number | undefined {
    return this.#dueInMs
  }

  /** Makes due what is due, and takes back what other workers have lost. Tells if jobs are parked that this worker may know. */
  async look(): Promise<boolean> {
    const { driver, database, events, jobs } = this.#options
    await this.#live()
    for (;;) {
      const names = [...jobs.keys()]
      const look = await runOne(database, lookAhead, { workerId: this.#id, names, queues: [] })
      if (look.dueInMs !== null && look.dueInMs <= 0n) {
        await runOne(database, promoteJobs, { limit: PROMOTE_LIMIT })
        continue
      }
      if (look.expiryInMs !== null && look.expiryInMs < 0n) await rescueJobs(driver, database, events)
      this.#dueInMs = look.dueInMs === null ? undefined : Number(look.dueInMs)
      return look.parked
    }
  }

  /** True if a job is due that {@link runNext} would run. */
  async isDue(): Promise<boolean> {
    const { database, queues } = this.#options
    await this.look()
    return (await run(database, findNextQueue, { queues })).length > 0
  }

  /**
   * Runs the next due job to its end, and records that. Nothing, if none is due.
   *
   * @throws {AttemptStuck} It did not end within `timeoutMs`; it was killed, and its lease is still there.
   */
  async runNext(timeoutMs: number): Promise<JobEnd | undefined> {
    const parked = await this.look()
    const claimed = (await this.#claim()) ?? (parked ? await this.#claimParked() : undefined)
    return claimed === undefined ? undefined : await this.#run(claimed, timeoutMs)
  }

  async #claim(): Promise<ClaimedJob | undefined> {
    const { database, queues } = this.#options
    const [next] = await run(database, findNextQueue, { queues })
    if (next === undefined) return undefined
    const wants = { queues: [next.queue], wanted: [1], free: [1] }
    return (await this.#traffic.trade(undefined, wants)).jobs[0]
  }

  async #claimParked(): Promise<ClaimedJob | undefined> {
    const jobs = [...this.#options.jobs.values()]
    const [names, contracts] = [jobs.map((job) => job.name), jobs.map((job) => job.contract)]
    return (await this.#traffic.claimParked(1, names, contracts))[0]
  }

  async #run(claimed: ClaimedJob, timeoutMs: number): Promise<JobEnd> {
    const { jobs, events, services, reached } = this.#options
    const life = new Life()
    const told = reached && ((step: string) => reached(step, claimed, life))
    const scope: Scope = { life, reached: (step) => told?.(step) }
    if (events.wants('attempt.started')) events.emit('attempt.started', factsOf(claimed))
    let attempt: Attempt | undefined
    const ended = new Promise<AttemptEnd>((resolve) => {
      const options = { jobs, services: services(claimed, scope) }
      const start = () => startAttempt(claimed, options, (_, end) => resolve(end))
      const name = claimed.name ?? ''
      const effects = jobs.get(name)?.effects ?? []
      attempt = runAs({ kind: 'job', name, effects }, () => runInScope(scope, start))
    })
    const end = await this.#await(ended, { claimed, life, attempt: attempt as unknown as Attempt, timeoutMs })
    if (end !== undefined && end.outcome.to !== 'committed')
      await Promise.race([told?.('handler over, before its end is recorded'), life.died.catch(() => {})])
    if (end === undefined || life.isDead) return { ...jobOf(claimed), outcome: 'killed', error: undefined }
    return await this.#record(claimed, end)
  }

  /** Nothing, if the attempt was killed. */
  async #await(
    ended: Promise<AttemptEnd>,
    running: {
      readonly claimed: ClaimedJob
      readonly life: Life
      readonly attempt: Attempt
      readonly timeoutMs: number
    },
  ): Promise<AttemptEnd | undefined> {
    const { claimed, life, attempt, timeoutMs } = running
    const over = new AbortController()
    const beat = setInterval(() => void this.#beat(attempt).catch(() => {}), BEAT_MS)
    let isStuck = false
    void sleep(timeoutMs, over.signal).then(() => {
      if (over.signal.aborted) return
      isStuck = true
      // Told to stop, so that what it holds is freed; what it does about that counts for nothing.
      life.die()
      attempt.interrupt()
    })
    const end = await Promise.race([ended, life.died.catch(() => undefined)])
    over.abort()
    clearInterval(beat)
    if (isStuck) throw new AttemptStuck(claimed)
    return end
  }

  /** The heartbeat of an attempt that takes its time, by which it hears that it was cancelled. */
  async #beat(attempt: Attempt): Promise<void> {
    const [row] = await run(this.#options.database, renewLeases, { workerId: this.#id })
    for (const [id, reason] of (row?.cancelled ?? []) as readonly CancelledJob[])
      if (id === attempt.claimed.id) attempt.abort(new JobCancelledError({ reason: reason ?? undefined }))
  }

  async #record(claimed: ClaimedJob, end: AttemptEnd): Promise<JobEnd> {
    const { database, events } = this.#options
    const { outcome, error, durationMs, endedAtMs } = end
    // A commit without an answer: a database inside this process has none of those.
    if (outcome.to === 'undecided') throw error
    if (outcome.to === 'committed') {
      this.#traffic.leases.settled(claimed.lease, 1, false)
      reportCommitted(events, claimed, outcome, durationMs)
    } else {
      const settlement: Settlement = { job: claimed, durationMs, endedAtMs, outcome, error }
      const batch = { workerId: claimed.lease.workerId, settlements: [settlement] }
      if (outcome.to === 'completed' && !outcome.late) await this.#traffic.trade(batch, undefined)
      else await this.#traffic.settleOthers(batch)
    }
    await this.#traffic.leases.closeFinished(database)
    const answer = outcome.to === 'committed' ? 'recorded' : this.#answer
    return { ...jobOf(claimed), outcome: outcomeOf(outcome, answer), error }
  }

  /** Renews the life of this worker, or begins a new one if it was declared dead: the clock may have been moved. */
  async #live(): Promise<void> {
    const { database, name, app, version, leaseMs, queues, jobs } = this.#options
    if (this.#id !== 0n && (await run(database, renewLeases, { workerId: this.#id })).length > 0) return
    const told = [...jobs.values()].map((job) => ({ name: job.name, contract: job.contract }))
    const { id } = await runOne(database, registerWorker, {
      name,
      app,
      version,
      leaseMs,
      queues: JSON.stringify(queues.map((queue) => ({ name: queue, concurrency: 1 }))),
      jobs: JSON.stringify(told),
      queueNames: queues,
    })
    this.#id = id
    this.#traffic = this.#newTraffic()
  }

  #newTraffic(): Traffic {
    const { database, queues, events } = this.#options
    return new Traffic({
      database,
      queues,
      events,
      lowWater: this.#lowWater,
      workerId: () => this.#id,
      mayTakeSuspect: () => true,
      onSettled: (settlement, answer) => {
        this.#answer = answer
        reportSettlement(events, settlement, answer)
      },
      onFinished: () => {},
    })
  }
}

function jobOf({ id, name, attempt }: ClaimedJob): Pick<JobEnd, 'id' | 'name' | 'attempt'> {
  return { id, name: name ?? '', attempt }
}

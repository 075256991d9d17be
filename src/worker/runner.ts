import { monotonicMs } from '../base/clock.ts'
import { JobCancelledError, LeaseLostError, ShutdownError } from '../base/errors.ts'
import type { EventHub } from '../base/events.ts'
import type { AnyJob } from '../jobs/define-job.ts'
import type { ClaimedJob } from './claimed-job.ts'
import { type Attempt, type AttemptEnd, startAttempt } from './executor.ts'
import type { ContextServices } from './handler-context.ts'
import type { LoopWatch } from './heartbeat.ts'
import type { CancelledJob } from './lease-keeper.ts'
import { Outbox, type Settlement } from './outbox.ts'
import type { CommittedOutcome } from './outcome.ts'
import { Slots } from './slots.ts'
import { factsOf } from './traffic.ts'

export interface RunnerOptions {
  readonly queues: readonly { readonly name: string; readonly concurrency: number }[]
  readonly jobs: ReadonlyMap<string, AnyJob>
  readonly services: ContextServices
  readonly events: EventHub
  readonly loopWatch: LoopWatch
  /** There is an outcome to record, or a slot is free. */
  readonly onChange: () => void
  /** A handler's own commit has completed its job. */
  readonly onCommitted: (job: ClaimedJob, outcome: CommittedOutcome, durationMs: number) => void
  /** A job that has cost two workers their life has ended: the next one of its queue may start. */
  readonly onSuspectEnded: (queue: string) => void
}

const EMPTY_POLL_MS = 20

/** The attempts of this process: in slots while they run, in the outbox once they have ended. */
export class Runner {
  readonly slots: readonly Slots[]
  readonly outbox = new Outbox()
  readonly #options: RunnerOptions
  readonly #bySlot: ReadonlyMap<string, Slots>
  readonly #attempts = new Set<Attempt>()
  /** Jobs that were cancelled and do not run here: they may be in a buffer, or on their way. */
  #cancelled = new Set<string>()
  #suspects = 0

  constructor(options: RunnerOptions) {
    this.#options = options
    this.slots = options.queues.map(
      ({ name, concurrency }) => new Slots(name, concurrency, (job) => this.#run(job)),
    )
    this.#bySlot = new Map(this.slots.map((slots) => [slots.queue, slots]))
  }

  /** Attempts under way. */
  get running(): number {
    return this.#attempts.size
  }

  /** True unless a job runs that has lost two workers: such jobs run one at a time in a process. */
  get mayTakeSuspect(): boolean {
    return this.#suspects === 0
  }

  /** Earliest moment by which a running attempt has to be over; infinite if none has to. */
  get hardDeadlineMs(): number {
    let earliest = Number.POSITIVE_INFINITY
    for (const { hardDeadlineMs } of this.#attempts) earliest = Math.min(earliest, hardDeadlineMs)
    return earliest
  }

  /** Gives claimed jobs back unstarted: no attempt is used, and each keeps its place. */
  handBack(jobs: readonly ClaimedJob[], why: 'busy' | 'stopping'): void {
    if (jobs.length === 0) return
    const endedAtMs = monotonicMs()
    for (const job of jobs) this.#settle(unstarted(job, endedAtMs))
    this.#options.events.emit('jobs.handedBack', { count: jobs.length, why })
  }

  handBackBuffers(): void {
    for (const slots of this.slots) this.handBack(slots.takeBuffer(), 'stopping')
  }

  /** `jobs` are all that this worker holds and that were cancelled: those that run are told, the others do not start. */
  cancel(jobs: readonly CancelledJob[]): void {
    const reasons = new Map(jobs)
    for (const attempt of this.#attempts) {
      const { id } = attempt.claimed
      const reason = reasons.get(id)
      if (reason !== undefined) attempt.abort(new JobCancelledError({ reason: reason ?? undefined }))
      reasons.delete(id)
    }
    this.#cancelled = new Set(reasons.keys())
  }

  /** The leases of a life are lost: buffers are dropped, attempts are told. Returns how many ran. */
  lose(workerId: bigint): number {
    const lost = [...this.#attempts].filter((attempt) => attempt.claimed.lease.workerId === workerId)
    for (const slots of this.slots) slots.takeBuffer()
    for (const attempt of lost) {
      const { id, lease } = attempt.claimed
      attempt.abort(new LeaseLostError({ jobId: BigInt(id), fencingToken: lease.token }))
    }
    return lost.length
  }

  /**
   * Lets attempts end until `abortAtMs`, then aborts them and waits `graceMs`, then ends what is left as
   * interrupted. Resolves when no attempt is under way; each has an outcome in the outbox.
   */
  async drain(abortAtMs: () => number, graceMs: number): Promise<void> {
    if (await this.#emptyBy(abortAtMs)) return
    for (const attempt of this.#attempts) attempt.abort(new ShutdownError())
    const handBackAtMs = monotonicMs() + graceMs
    await this.#emptyBy(() => handBackAtMs)
    for (const attempt of this.#attempts) attempt.interrupt()
    // What is left waits for the answer to a commit of its own: a statement's deadline, 30 s, or two.
    await this.#emptyBy(() => Number.POSITIVE_INFINITY)
  }

  #run(claimed: ClaimedJob): void {
    const { events, jobs, loopWatch } = this.#options
    // Once: one that an operator had run again after its cancel may be among them still.
    if (this.#cancelled.delete(claimed.id)) return this.#skip(claimed)
    if (claimed.care === 2) this.#suspects += 1
    if (events.wants('attempt.started')) events.emit('attempt.started', factsOf(claimed))
    const job = jobs.get(claimed.name ?? '')
    if (job?.timeoutMs !== undefined) loopWatch.starting(job.timeoutMs + job.abortGraceMs)
    this.#attempts.add(startAttempt(claimed, this.#options, this.#ended))
  }

  /** Given back it ends as cancelled, for the database knows; one that is not cancelled any more waits again. */
  #skip(claimed: ClaimedJob): void {
    this.#settle(unstarted(claimed, monotonicMs()))
    // A slot is given back only after it was taken.
    queueMicrotask(() => {
      if (claimed.care === 2) this.#options.onSuspectEnded(claimed.queue)
      this.#bySlot.get(claimed.queue)?.finished()
    })
  }

  readonly #ended = (attempt: Attempt, end: AttemptEnd): void => {
    const { claimed } = attempt
    const { events, onSuspectEnded } = this.#options
    this.#attempts.delete(attempt)
    if (claimed.care === 2) {
      this.#suspects -= 1
      onSuspectEnded(claimed.queue)
    }
    if (end.abandoned && end.outcome.to !== 'ready') events.emit('handler.abandoned', factsOf(claimed))
    if (end.outcome.to === 'ready') events.emit('jobs.handedBack', { count: 1, why: 'interrupted' })
    const { outcome, error, durationMs, endedAtMs } = end
    if (outcome.to === 'committed') this.#options.onCommitted(claimed, outcome, durationMs)
    // A rescue finds out: it waits for that transaction.
    else if (outcome.to === 'undecided')
      events.emit('worker.error', { during: "a job's own commit", error, retryInMs: 0 })
    else this.#settle({ job: claimed, durationMs, endedAtMs, outcome, error })
    this.#bySlot.get(claimed.queue)?.finished(end.durationMs)
  }

  #settle(settlement: Settlement): void {
    this.outbox.add(settlement)
    this.#options.onChange()
  }

  async #emptyBy(deadlineMs: () => number): Promise<boolean> {
    while (this.#attempts.size > 0) {
      const leftMs = deadlineMs() - monotonicMs()
      if (leftMs <= 0) break
      await new Promise((resolve) => setTimeout(resolve, Math.min(EMPTY_POLL_MS, leftMs)))
    }
    return this.#attempts.size === 0
  }
}

function unstarted(job: ClaimedJob, endedAtMs: number): Settlement {
  return { job, durationMs: 0, endedAtMs, outcome: { to: 'ready', ended: 'handed-back' }, error: undefined }
}

import { monotonicMs } from '../base/clock.ts'
import { isInstance } from '../base/error-text.ts'
import { type InputIssue, InvalidInputError, JobTimeoutError, ShutdownError } from '../base/errors.ts'
import { startTimer } from '../base/sleep.ts'
import type { AnyJob } from '../jobs/define-job.ts'
import { validate, validateResult } from '../jobs/validate.ts'
import type { ClaimedJob } from './claimed-job.ts'
import { type ContextServices, HandlerContext } from './handler-context.ts'
import {
  type CommittedOutcome,
  completedOutcome,
  decideOutcome,
  type Ending,
  type Outcome,
  type UndecidedOutcome,
} from './outcome.ts'
import { needsPreparation, prepare } from './prepare.ts'

export interface ExecutorOptions {
  readonly jobs: ReadonlyMap<string, AnyJob>
  readonly services: ContextServices
}

/** An attempt under way. */
export interface Attempt {
  readonly claimed: ClaimedJob
  readonly context: HandlerContext
  /** When the attempt must have ended, by the monotonic clock; infinite without a timeout. */
  readonly hardDeadlineMs: number
  /** Tells the handler to stop, and gives it the grace of its job. */
  abort(reason: Error): void
  /** Ends the attempt now as interrupted; a handler that goes on is on its own. */
  interrupt(): void
}

/** How an attempt ended. `abandoned`: its handler has not returned and is still somewhere. */
export interface AttemptEnd {
  readonly outcome: Outcome | CommittedOutcome | UndecidedOutcome
  readonly error: unknown
  readonly durationMs: number
  /** By the monotonic clock. */
  readonly endedAtMs: number
  readonly abandoned: boolean
}

/**
 * Runs one attempt: resolve the job, check its input, call the handler, wait for its end or for its time to run
 * out, decide what becomes of it. Never throws: whatever happens is an outcome, told to `ended` once, and never
 * before this function has returned.
 *
 * Time: at `timeoutMs` the signal aborts; a handler that returns within the grace has completed, late, since
 * repeating what has succeeded would be worse; one that throws has timed out; one that does neither is left
 * behind as *abandoned* when the grace is over, and what it does afterwards counts for nothing.
 */
export function startAttempt(
  claimed: ClaimedJob,
  options: ExecutorOptions,
  ended: (attempt: Attempt, end: AttemptEnd) => void,
): Attempt {
  const job = claimed.name === null ? undefined : options.jobs.get(claimed.name)
  const attempt = new RunningAttempt(claimed, job, options.services, ended)
  attempt.begin()
  return attempt
}

/** One object for each attempt, and few closures: at 100,000 jobs a second, garbage is what Node spends its time on. */
class RunningAttempt implements Attempt {
  readonly claimed: ClaimedJob
  readonly context: HandlerContext
  readonly hardDeadlineMs: number
  readonly #job: AnyJob | undefined
  readonly #services: ContextServices
  readonly #ended: (attempt: Attempt, end: AttemptEnd) => void
  readonly #startedMs = monotonicMs()
  #stopTimer: (() => void) | undefined
  #isOver = false

  constructor(
    claimed: ClaimedJob,
    job: AnyJob | undefined,
    services: ContextServices,
    ended: (attempt: Attempt, end: AttemptEnd) => void,
  ) {
    this.claimed = claimed
    this.context = new HandlerContext(claimed, services, { job, startedMs: this.#startedMs })
    this.hardDeadlineMs =
      job?.timeoutMs === undefined
        ? Number.POSITIVE_INFINITY
        : this.#startedMs + job.timeoutMs + job.abortGraceMs
    this.#job = job
    this.#services = services
    this.#ended = ended
  }

  begin(): void {
    const job = this.#job
    if (job === undefined) {
      const { name } = this.claimed
      const reason = name === null ? 'its job row is gone' : `this worker does not know the job "${name}"`
      queueMicrotask(() => this.#end({ to: 'parked', reason, contract: null }, undefined, false))
      return
    }
    if (job.timeoutMs !== undefined) {
      const { timeoutMs } = job
      this.#stopTimer = startTimer(timeoutMs, () => this.abort(new JobTimeoutError({ timeoutMs })))
    }
    this.#call(job).then(
      (value) => this.#returned(value),
      (error: unknown) => this.#threw(error),
    )
  }

  abort(reason: Error): void {
    if (this.#isOver || this.context.abortReason !== undefined) return
    this.context.abort(reason)
    this.#stopTimer?.()
    this.#stopTimer = startTimer(this.#job?.abortGraceMs ?? 0, () =>
      this.#decide(endingOfAbandoned(reason), true),
    )
  }

  interrupt(): void {
    this.context.abort(new ShutdownError())
    this.context.work?.stopAsking()
    this.#decide({ kind: 'interrupted' }, true)
  }

  /** Gives the handler's result; throws what it threw, and {@link InputRefused} if it was not called. */
  async #call(job: AnyJob): Promise<unknown> {
    const checked = validate(job.input, this.claimed.input)
    const { value, issues } = checked instanceof Promise ? await checked : checked
    if (issues !== undefined) throw new InputRefused(job, issues)
    if (this.claimed.hasCheckpoint) await this.context.readCheckpoint()
    if (needsPreparation(job, this.#services)) await prepare(job, value, this.context, this.#services)
    const result = await job.handler(this.context, value)
    return job.result === undefined ? result : await validateResult(job, result)
  }

  #returned(value: unknown): void {
    const { decision, abortReason, work } = this.context
    const underWay = work?.underWay
    // What the handler has begun and not waited for: its failure is the attempt's.
    if (underWay !== undefined) {
      void underWay.then((failure) => {
        if (failure === undefined) this.#returned(value)
        else this.#threw(failure.error)
      })
    } else if (decision !== undefined) this.#decide({ kind: 'decided', decision })
    else if (work !== undefined || abortReason !== undefined) {
      this.#decide({ kind: 'returned', value, late: abortReason instanceof JobTimeoutError })
    } else this.#end(completedOutcome(value, false), undefined, false)
  }

  #threw(error: unknown): void {
    const { abortReason, work } = this.context
    if (isInstance(error, InputRefused)) return this.#end(error.outcome, undefined, false)
    const underWay = work?.underWay
    // One of several effects has failed: what became of the others can still be recorded.
    if (underWay !== undefined) return void underWay.then(() => this.#threw(error))
    const { decision } = this.context
    if (decision !== undefined) return this.#decide({ kind: 'decided', decision })
    if (abortReason instanceof JobTimeoutError) return this.#decide({ kind: 'timed-out', error: abortReason })
    if (abortReason instanceof ShutdownError) return this.#decide({ kind: 'interrupted' })
    this.#decide({ kind: 'threw', error })
  }

  #decide(ending: Ending, abandoned = false): void {
    const deciding = this.context.work?.deciding
    // A commit of the handler's is on its way: what becomes of that comes first.
    if (deciding !== undefined) void deciding.then(() => this.#decide(ending, abandoned))
    else this.#end(this.#outcomeOf(ending), 'error' in ending ? ending.error : undefined, abandoned)
  }

  #outcomeOf(given: Ending): AttemptEnd['outcome'] {
    const { decision, work } = this.context
    if (work?.undecided !== undefined) return { to: 'undecided' }
    if (work?.committed !== undefined) {
      const late = this.context.abortReason instanceof JobTimeoutError
      return { to: 'committed', late, altered: work.committed.altered }
    }
    const { attempt, maxAttempts } = this.claimed
    const ending: Ending =
      given.kind === 'returned' && decision !== undefined ? { kind: 'decided', decision } : given
    return decideOutcome(ending, { attempt, maxAttempts, retry: this.#job?.retry })
  }

  #end(outcome: AttemptEnd['outcome'], error: unknown, abandoned: boolean): void {
    if (this.#isOver) return
    this.#isOver = true
    this.context.work?.end()
    this.#stopTimer?.()
    const endedAtMs = monotonicMs()
    this.#ended(this, { outcome, error, durationMs: endedAtMs - this.#startedMs, endedAtMs, abandoned })
  }
}

/** The stored input does not fit this worker's schema: another worker's may. */
class InputRefused extends Error {
  readonly outcome: Outcome

  constructor(job: AnyJob, issues: readonly InputIssue[]) {
    const { message } = new InvalidInputError({ job: job.name, issues })
    super(message)
    this.outcome = { to: 'parked', reason: message, contract: job.contract }
  }
}

function endingOfAbandoned(reason: Error): Ending {
  if (reason instanceof JobTimeoutError) return { kind: 'timed-out', error: reason }
  if (reason instanceof ShutdownError) return { kind: 'interrupted' }
  return { kind: 'threw', error: reason }
}

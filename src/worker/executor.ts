import { monotonicMs } from '../base/clock.ts'
import { InvalidInputError, JobTimeoutError, ShutdownError } from '../base/errors.ts'
import { startTimer } from '../base/sleep.ts'
import type { AnyJob } from '../jobs/define-job.ts'
import { validate } from '../jobs/validate.ts'
import type { ClaimedJob } from './claimed-job.ts'
import { type ContextServices, HandlerContext } from './handler-context.ts'
import { decideOutcome, type Ending, type Outcome } from './outcome.ts'

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
  readonly outcome: Outcome
  readonly error: unknown
  readonly durationMs: number
  readonly abandoned: boolean
}

/**
 * Runs one attempt: resolve the job, check its input, call the handler, wait for its end or for its time to run
 * out, decide what becomes of it. Never throws: whatever happens is an outcome.
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
  const context = new HandlerContext(claimed, options.services)
  const startedMs = monotonicMs()
  const grace = job?.abortGraceMs ?? 0
  let stopTimer: (() => void) | undefined
  let isOver = false

  const end = (outcome: Outcome, error: unknown, abandoned: boolean): void => {
    if (isOver) return
    isOver = true
    stopTimer?.()
    ended(attempt, { outcome, error, durationMs: monotonicMs() - startedMs, abandoned })
  }
  const decide = (ending: Ending, abandoned = false): void => {
    const facts = { attempt: claimed.attempt, maxAttempts: claimed.maxAttempts, retry: job?.retry }
    end(decideOutcome(ending, facts), 'error' in ending ? ending.error : undefined, abandoned)
  }
  const attempt: Attempt = {
    claimed,
    context,
    hardDeadlineMs:
      job?.timeoutMs === undefined ? Number.POSITIVE_INFINITY : startedMs + job.timeoutMs + grace,
    abort(reason) {
      if (isOver || context.abortReason !== undefined) return
      context.abort(reason)
      stopTimer?.()
      stopTimer = startTimer(grace, () => decide(endingOfAbandoned(reason), true))
    },
    interrupt() {
      context.abort(new ShutdownError())
      decide({ kind: 'interrupted' }, true)
    },
  }

  if (job === undefined) {
    const reason =
      claimed.name === null ? 'its job row is gone' : `this worker does not know the job "${claimed.name}"`
    end({ to: 'parked', reason, contract: null }, undefined, false)
    return attempt
  }
  if (job.timeoutMs !== undefined) {
    const { timeoutMs } = job
    stopTimer = startTimer(timeoutMs, () => attempt.abort(new JobTimeoutError({ timeoutMs })))
  }
  void runHandler(job, claimed, context).then(
    (answer) =>
      answer.refused === undefined
        ? decide(endingOf(context, answer))
        : end(answer.refused, undefined, false),
    (error: unknown) => decide(endingOf(context, { error })),
  )
  return attempt
}

type Answer = { readonly value?: unknown; readonly refused?: Outcome; readonly error?: unknown }

async function runHandler(job: AnyJob, claimed: ClaimedJob, context: HandlerContext): Promise<Answer> {
  const checked = validate(job.input, claimed.input)
  const { value, issues } = checked instanceof Promise ? await checked : checked
  if (issues !== undefined) {
    const { message } = new InvalidInputError({ job: job.name, issues })
    return { refused: { to: 'parked', reason: message, contract: job.contract } }
  }
  const result = await job.handler(context, value)
  if (job.result === undefined || result === undefined) return { value: result }
  const valid = await validate(job.result, result)
  if (valid.issues !== undefined) {
    throw new InvalidInputError({ job: `${job.name} (result)`, issues: valid.issues })
  }
  return { value: valid.value }
}

/** What a handler that came to an end means, given what it decided and what it had been told. */
function endingOf(context: HandlerContext, answer: Answer): Ending {
  const { decision, abortReason } = context
  if (decision !== undefined) return { kind: 'decided', decision }
  if (!('error' in answer))
    return { kind: 'returned', value: answer.value, late: abortReason instanceof JobTimeoutError }
  if (abortReason instanceof JobTimeoutError) return { kind: 'timed-out', error: abortReason }
  if (abortReason instanceof ShutdownError) return { kind: 'interrupted' }
  return { kind: 'threw', error: answer.error }
}

function endingOfAbandoned(reason: Error): Ending {
  if (reason instanceof JobTimeoutError) return { kind: 'timed-out', error: reason }
  if (reason instanceof ShutdownError) return { kind: 'interrupted' }
  return { kind: 'threw', error: reason }
}

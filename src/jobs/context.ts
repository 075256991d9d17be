import type { Logger } from '../base/logger.ts'
import type { EnqueuedName } from '../effects/effect-name.ts'
import type { JobInput, JobNamed } from './define-job.ts'
import type { ContextData, EnqueueAnswer, EnqueueOptions } from './enqueue-options.ts'

/** The facts of the job that a handler runs for. */
export interface RunningJob {
  /** 64 bits, as text: JavaScript numbers would round it. */
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly tenant: string
  /** Number of this attempt, counted from 1. Snoozes and hand-backs do not count. */
  readonly attempt: number
  readonly maxAttempts: number
  /**
   * Grows with every claim and is never used again. Send it along with writes to other stores, and let them
   * refuse a smaller one than they have seen: that keeps a paused and woken process from writing.
   */
  readonly fencingToken: bigint
  readonly enqueuedAt: Date
  /** When the job was first due: `runAt` of its enqueue, else the time of the enqueue. */
  readonly scheduledAt: Date
}

/** The context of a job that was enqueued without one. */
export const noContext: ContextData = Object.freeze({})

/** What was stored as a job's context, if it is an object. */
export function contextData(stored: unknown): ContextData {
  if (typeof stored !== 'object' || stored === null || Array.isArray(stored)) return noContext
  return stored as ContextData
}

/**
 * What a handler gets beside its input. `Resources` is what the job's `uses` give, `Effect` the union of its declared
 * effects; without them it is what every handler has, and any handler's context fits it.
 */
export interface JobContext<Resources extends object = object, Effect extends string = never> {
  readonly job: RunningJob
  /**
   * Aborts when the attempt has to end: its `reason` is a `JobTimeoutError`, `JobCancelledError`,
   * `ShutdownError` or `LeaseLostError`. Pass it on to whatever takes a signal.
   */
  readonly signal: AbortSignal
  /** Writes to the application's logger with the job's facts and context. */
  readonly log: Logger
  /** What its enqueue gave as `context`: who asked for it. Empty without one; a job enqueued by `enqueue` inherits it. */
  readonly context: ContextData
  /** The resources of the job's `uses`, built; empty without any. */
  readonly resources: Resources
  /**
   * Ends the attempt by an exception that must not be caught: runs the job again in `inMs` milliseconds
   * (0 to about 100 years) and gives the attempt back.
   */
  snooze(options: { readonly inMs: number }): never
  /** Ends the attempt by an exception: the job is discarded at once, whatever attempts are left. */
  discard(reason: string): never
  /** Ends the attempt by an exception: the job ends cancelled. */
  cancel(reason: string): never
  /** Ends the attempt by an exception as failed: the next one follows in `inMs` milliseconds, if one is left. */
  retry(options: { readonly inMs: number; readonly reason?: string }): never
  /**
   * Enqueues another job, committed at once: it stays even if this attempt fails. Takes only jobs that the `effects`
   * of this one name, and throws `UndeclaredEffectError` for another; throws the signal's `LeaseLostError` once the
   * lease is known to be lost.
   */
  enqueue<J extends JobNamed<EnqueuedName<Effect>>>(
    job: J,
    input: JobInput<J>,
    options?: Omit<EnqueueOptions, 'tx'>,
  ): Promise<EnqueueAnswer>
}

import type { Logger } from '../base/logger.ts'
import type { EnqueuedName, OutsideEffect } from '../effects/effect-name.ts'
import type { EffectCall, EffectOptions } from '../effects/effect-options.ts'
import type { Keys } from '../keys/keys.ts'
import type { Locks } from '../locks/locks.ts'
import type { ScriptParams } from '../scripts/params.ts'
import type { ScriptResult } from '../scripts/result.ts'
import type { ScriptOptions } from '../scripts/scripts.ts'
import type { Sequences } from '../sequences/sequences.ts'
import type { JobInput, JobNamed } from './define-job.ts'
import type { ContextData, EnqueueAnswer, EnqueueOptions } from './enqueue-options.ts'
import type { Transaction } from './transaction.ts'

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
  /** What `ctx.checkpoint` kept last, in this attempt or an earlier one; `undefined` if nothing. */
  readonly checkpoint: unknown
}

/**
 * What handlers coordinate by: that of the application which runs them, in tests that of the test's. Nothing of it is bound to
 * the lease: a worker that was paused may still write. Pass the `tx` of `ctx.transaction` or `ctx.commit`, and it is.
 */
export interface JobCoordination {
  /** As `app.locks`. */
  readonly locks: Locks
  /** As `app.keys`. */
  readonly keys: Keys
  /** As `app.sequences`. */
  readonly sequences: Sequences
  /** As `app.script`. @throws What that throws. */
  script(text: string, params?: ScriptParams, options?: ScriptOptions): Promise<ScriptResult>
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
export interface JobContext<Resources extends object = object, Effect extends string = never>
  extends JobCoordination {
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
   * lease is known to be lost, and `AttemptEndedError` after `commit`.
   */
  enqueue<J extends JobNamed<EnqueuedName<Effect>>>(
    job: J,
    input: JobInput<J>,
    options?: Omit<EnqueueOptions, 'tx'>,
  ): Promise<EnqueueAnswer>
  /**
   * Calls `fn`, which acts on the outside, so that it never acts twice in silence. The intent is committed before the
   * call, the result after it, both only while the lease is this attempt's. If the effect has happened, `fn` is not
   * called. If a call before may have happened or not (its process died, or it threw), `ifUncertain` decides.
   *
   * What `fn` throws leaves the effect in doubt, unless it says {@link notHappened}, or `notHappened` of the options
   * or of the resource is true for it. Costs two commits and two round trips; one that has happened, one of each.
   * The attempt lasts until it has ended, even if the handler does not wait for it; its failure is then the attempt's.
   *
   * @param name What it does, as declared in `effects`: `send:email`.
   * @returns What `fn` gave, now or at an earlier attempt, as JSON holds it (at most 256 KiB): dates are text.
   * @throws {EffectUncertainError} A person has to decide. The job is discarded with the reason `effect-uncertain`,
   *   whatever the handler does with this error; `holdfast effects resolve` lets it go on.
   * @throws {EffectBusyError} The same effect is being called elsewhere, for longer than `waitMs`.
   * @throws {InvalidArgumentError} An option is wrong, or there is no key. Nothing was called, as with the next two.
   * @throws {UndeclaredEffectError} The job does not declare it.
   * @throws {OutsideTransactionError} Inside a transaction of ours, which would stay open meanwhile.
   * @throws {AttemptEndedError} The attempt is over, or the job completed by its own commit.
   * @throws {LeaseLostError} The job is another worker's. @throws {JobCancelledError} Somebody cancelled it.
   *
   * @example
   * const receipt = await ctx.effect('send:email', { key: `confirmation:${orderId}`, ifUncertain: 'repeat' },
   *   ({ idempotencyKey, signal }) => mailer.send(mail, { idempotencyKey, signal }))
   */
  effect<T>(
    name: Extract<Effect, OutsideEffect>,
    options: EffectOptions<T>,
    fn: (call: EffectCall) => T | Promise<T>,
  ): Promise<T>
  /**
   * Runs `fn` in a transaction that only commits while the lease is this attempt's. A rescue waits for it, so keep it
   * short; PostgreSQL ends one that does nothing for the length of a lease.
   *
   * @throws {LeaseLostError} {@link JobCancelledError} Nothing was run. What `fn` throws, after a rollback.
   * @throws {OutcomeUnknownError} The answer to the commit was lost. It is not asked for: use {@link commit}.
   */
  transaction<T>(fn: (tx: Transaction) => T | Promise<T>): Promise<T>
  /**
   * Runs `fn` in a transaction that also completes the job, with what `fn` gives as its result: business writes, enqueues,
   * effects on this database and the completion commit together, or nothing does, and never twice. The last thing a
   * handler does: what it returns or throws afterwards is ignored. If the answer to the commit is lost, PostgreSQL is
   * asked what became of it for as long as the lease is held. One at a time; again after one that has failed.
   *
   * @returns The result, as JSON holds it, and as the job's `result` schema wants it.
   * @throws {LeaseLostError} {@link JobCancelledError} Nothing is committed. What `fn` throws, after a rollback.
   * @throws {AttemptEndedError} The handler has decided otherwise (`ctx.discard`), or another is under way. Nothing is
   *   committed, as with the next two.
   * @throws {InvalidInputError} The schema refuses the result. @throws {UnavailableError} It did not commit: try again.
   * @throws {OutcomeUnknownError} The answer was lost, and then the lease, or the worker was stopped. Nothing more is
   *   recorded: whoever rescues the job finds out.
   */
  commit<T>(fn: (tx: Transaction) => T | Promise<T>): Promise<T>
  /**
   * Asserts in a transaction that you opened, with whatever driver, that the lease is this attempt's, and keeps it so until
   * the transaction ends: no other worker gets the job before. Call it first; what was written before it is only safe if the
   * transaction then rolls back. A handler that is abandoned after its timeout is recorded so all the same: keep the
   * transaction shorter than the grace.
   *
   * @throws {LeaseLostError} {@link JobCancelledError} Roll back. @throws {TransactionRequiredError} As for `app.enqueue`.
   */
  fence(tx: unknown): Promise<void>
  /**
   * Keeps a value for the attempts to come: the next one finds it in `ctx.job.checkpoint`. Committed when it resolves;
   * safe to repeat. Take it after the work it stands for, never before.
   *
   * @param value What JSON can hold, at most 256 KiB.
   * @throws {NotStorableError} {@link TooLargeError} {@link LeaseLostError} {@link JobCancelledError} Nothing was kept.
   */
  checkpoint(value: unknown): Promise<void>
  /**
   * Tells how far the job has come, for people. It never falls, over all attempts. Committed when it resolves.
   *
   * @param fraction 0 to 1. @param note What it is at; at most 1 KiB, the rest is cut off.
   * @throws {InvalidArgumentError} {@link LeaseLostError} {@link JobCancelledError}
   */
  progress(fraction: number, note?: string): Promise<void>
}

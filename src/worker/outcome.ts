import { type BackoffPolicy, backoffMs, defaultBackoff } from '../base/backoff.ts'
import { errorToJson, isInstance } from '../base/error-text.ts'
import { toRecordableJson, truncateUtf8 } from '../base/json.ts'
import { limits } from '../base/limits.ts'

/** Thrown by a handler: the job cannot succeed, ever. It is discarded at once, whatever attempts are left. */
export class PermanentError extends Error {
  override readonly name = 'PermanentError'
}

/** What a handler decided by `ctx.snooze`, `ctx.discard`, `ctx.cancel` or `ctx.retry`. */
export type Decision =
  | { readonly kind: 'snooze'; readonly inMs: number }
  | { readonly kind: 'discard'; readonly reason: string; readonly error?: unknown }
  | { readonly kind: 'cancel'; readonly reason: string }
  | { readonly kind: 'retry'; readonly inMs: number; readonly reason: string }

/** How an attempt ended, before anything is recorded. */
export type Ending =
  | { readonly kind: 'returned'; readonly value: unknown; readonly late: boolean }
  | { readonly kind: 'decided'; readonly decision: Decision }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'timed-out'; readonly error: unknown }
  | { readonly kind: 'interrupted' }

/** What is recorded, and what becomes of the job. */
export type Outcome =
  | {
      readonly to: 'completed'
      readonly result: string | null
      readonly late: boolean
      readonly altered?: string
    }
  | {
      readonly to: 'scheduled'
      readonly ended: 'failed' | 'timed-out' | 'snoozed'
      readonly delayMs: number
      readonly error?: string
    }
  | { readonly to: 'discarded'; readonly reason: string; readonly error: string | null }
  | { readonly to: 'cancelled'; readonly reason: string }
  | { readonly to: 'ready'; readonly ended: 'handed-back' | 'interrupted' }
  | { readonly to: 'parked'; readonly reason: string; readonly contract: string | null }

/** The handler's own commit has recorded the completion. */
export interface CommittedOutcome {
  readonly to: 'committed'
  readonly late: boolean
  readonly altered: string | undefined
}

/** What became of the handler's own commit is not known, and was asked for in vain. Nothing may be recorded. */
export interface UndecidedOutcome {
  readonly to: 'undecided'
}

export interface AttemptFacts {
  readonly attempt: number
  readonly maxAttempts: number
  readonly retry: BackoffPolicy | undefined
}

/**
 * Decides what becomes of a job whose attempt has ended. Pure and total: whatever a handler returned or threw,
 * there is an outcome that can be recorded.
 */
export function decideOutcome(ending: Ending, facts: AttemptFacts): Outcome {
  switch (ending.kind) {
    case 'returned':
      return completedOutcome(ending.value, ending.late)
    case 'interrupted':
      return { to: 'ready', ended: 'interrupted' }
    case 'timed-out':
      return failed(ending.error, facts, 'timed-out')
    case 'threw':
      return isInstance(ending.error, PermanentError)
        ? { to: 'discarded', reason: 'permanent error', error: errorToJson(ending.error) }
        : failed(ending.error, facts, 'failed')
    case 'decided':
      return decided(ending.decision, facts)
  }
}

const COMPLETED = Object.freeze({ to: 'completed', result: null, late: false } as const)

/** The outcome of a handler that returned: the hot path, and mostly one and the same. */
export function completedOutcome(value: unknown, late: boolean): Outcome {
  if (value === undefined) return late ? { ...COMPLETED, late } : COMPLETED
  const { json, altered, problem } = toRecordableJson(value, { maxBytes: limits.resultBytes.default })
  return { to: 'completed', result: json, late, ...(altered ? { altered: problem ?? 'altered' } : {}) }
}

function decided(decision: Decision, facts: AttemptFacts): Outcome {
  switch (decision.kind) {
    case 'snooze':
      return { to: 'scheduled', ended: 'snoozed', delayMs: decision.inMs }
    case 'discard':
      return {
        to: 'discarded',
        reason: note(decision.reason),
        error: decision.error === undefined ? null : errorToJson(decision.error),
      }
    case 'cancel':
      return { to: 'cancelled', reason: note(decision.reason) }
    case 'retry': {
      const error = errorToJson(new Error(decision.reason))
      return facts.attempt >= facts.maxAttempts
        ? { to: 'discarded', reason: 'no attempts left', error }
        : { to: 'scheduled', ended: 'failed', delayMs: decision.inMs, error }
    }
  }
}

function failed(error: unknown, facts: AttemptFacts, ended: 'failed' | 'timed-out'): Outcome {
  const text = errorToJson(error)
  if (facts.attempt >= facts.maxAttempts) return { to: 'discarded', reason: 'no attempts left', error: text }
  return {
    to: 'scheduled',
    ended,
    delayMs: backoffMs(facts.retry ?? defaultBackoff, facts.attempt, { error }),
    error: text,
  }
}

function note(text: string): string {
  return truncateUtf8(
    JSON.parse(toRecordableJson(text, { maxBytes: 1 << 20 }).json) as string,
    limits.noteBytes.default,
  )
}

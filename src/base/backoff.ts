import { checkNumber, checkOneOf } from './check.ts'
import { InvalidArgumentError } from './errors.ts'
import { limits } from './limits.ts'

/** `full`: a random wait between 0 and the computed one, so that failed jobs do not return all at once. */
export type Jitter = 'full' | 'none'

/** Waits that grow by a factor up to a cap. Defaults and ranges: `limits`. */
export interface ExponentialBackoff {
  readonly type: 'exponential'
  /** Wait after the first failed attempt, in milliseconds. Default: 1,000. */
  readonly baseMs?: number
  /** What each further failed attempt multiplies it by: 1 to 100. Default: 2. */
  readonly factor?: number
  /** Longest wait, in milliseconds. Default: 3,600,000 (an hour). */
  readonly capMs?: number
  /** Default: `full`. */
  readonly jitter?: Jitter
}

/** The same wait after each failed attempt. */
export interface FixedBackoff {
  readonly type: 'fixed'
  readonly delayMs: number
  /** Default: `none`. */
  readonly jitter?: Jitter
}

/**
 * How long to wait before the next attempt, as data or as a function of the failed attempt's number (from 1) and
 * of what it threw. A function that throws, or gives anything but a number of milliseconds from 0 to 365 days,
 * counts for nothing: the default is taken.
 */
export type BackoffPolicy = ExponentialBackoff | FixedBackoff | ((attempt: number, error: unknown) => number)

export const defaultBackoff: ExponentialBackoff = { type: 'exponential' }

/**
 * Checks a policy as the user declared it.
 *
 * @throws {InvalidArgumentError} A member is out of range, or the type unknown.
 */
export function checkBackoff(field: string, policy: BackoffPolicy | undefined): BackoffPolicy {
  if (policy === undefined) return defaultBackoff
  if (typeof policy === 'function') return policy
  if (typeof policy !== 'object' || policy === null) {
    throw new InvalidArgumentError({ field, problem: 'must be a function or an object with a "type"' })
  }
  const type = checkOneOf(`${field}.type`, policy.type, ['exponential', 'fixed'])
  const jitter = policy.jitter ?? (type === 'fixed' ? 'none' : 'full')
  checkOneOf(`${field}.jitter`, jitter, ['full', 'none'])
  if (policy.type === 'fixed') {
    // No default: somebody who wants the same wait each time has one in mind.
    const delayMs: unknown = policy.delayMs ?? Number.NaN
    return { type: 'fixed', delayMs: checkNumber(`${field}.delayMs`, delayMs, limits.backoffCapMs), jitter }
  }
  return {
    type: 'exponential',
    baseMs: checkNumber(`${field}.baseMs`, policy.baseMs, limits.backoffBaseMs),
    factor: checkNumber(`${field}.factor`, policy.factor, limits.backoffFactor),
    capMs: checkNumber(`${field}.capMs`, policy.capMs, limits.backoffCapMs),
    jitter,
  }
}

/**
 * Gives the wait after failed attempt `attempt` (from 1), in whole milliseconds.
 *
 * Before jitter it never shrinks from one attempt to the next and never passes the cap, for any attempt number.
 */
export function backoffMs(
  policy: BackoffPolicy,
  attempt: number,
  options: { readonly error?: unknown; readonly random?: () => number } = {},
): number {
  const { random = Math.random, error } = options
  if (typeof policy === 'function') {
    return callPolicy(policy, attempt, error) ?? backoffMs(defaultBackoff, attempt, { random })
  }
  const longest = policy.type === 'fixed' ? policy.delayMs : exponentialMs(policy, attempt)
  const jitter = policy.jitter ?? (policy.type === 'fixed' ? 'none' : 'full')
  return Math.round(jitter === 'full' ? longest * random() : longest)
}

function exponentialMs(policy: ExponentialBackoff, attempt: number): number {
  const baseMs = policy.baseMs ?? limits.backoffBaseMs.default
  const factor = policy.factor ?? limits.backoffFactor.default
  const capMs = policy.capMs ?? limits.backoffCapMs.default
  // 0 times an infinite power is not a number.
  if (baseMs === 0) return 0
  return Math.min(capMs, baseMs * factor ** (Math.max(1, attempt) - 1))
}

function callPolicy(
  policy: (attempt: number, error: unknown) => number,
  attempt: number,
  error: unknown,
): number | undefined {
  try {
    const ms: unknown = policy(attempt, error)
    const usable = typeof ms === 'number' && ms >= 0 && ms <= limits.backoffCapMs.max
    return usable ? Math.round(ms) : undefined
  } catch {
    // A failed attempt has to be recorded whatever its policy does; the default wait is the documented answer.
    return undefined
  }
}

import { checkKey, checkNumber } from '../base/check.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import { limits } from '../base/limits.ts'

/** What the function of an effect is given. */
export interface EffectCall {
  /** For the provider: the same at every repetition of this effect. See `idempotencyKeyOf`. */
  readonly idempotencyKey: string
  /** Aborts when the attempt has to end; outside jobs, when the call's time is up. */
  readonly signal: AbortSignal
}

/** What is known of a call in doubt. */
export interface UncertainCall {
  readonly effect: string
  readonly key: string
  /** What the provider was given. */
  readonly idempotencyKey: string
  /** When the call in doubt was about to be made, by PostgreSQL's clock. */
  readonly intendedAt: Date
  /** How often the effect was called so far, or may have been. */
  readonly calls: number
  readonly signal: AbortSignal
}

/** What the provider said of a call in doubt. */
export type Confirmation<T> = { readonly happened: true; readonly result: T } | { readonly happened: false }

/** What to do about a call in doubt. */
export type IfUncertain<T> =
  | 'ask'
  | 'repeat'
  | ((call: UncertainCall) => Confirmation<T> | Promise<Confirmation<T>>)

/** Options of `ctx.effect` and `app.effect`. */
export interface EffectOptions<T> {
  /**
   * What the effect is for the business, such as `confirmation:42`: 1 to 1,024 bytes on one line. The same key means the
   * same effect, from whatever job or attempt; never build it from ids of jobs or numbers of attempts. In a job with a
   * unique key, its default is the job's name and that key.
   */
  readonly key?: string | undefined
  /**
   * What to do if an earlier call may have happened or not, because its process died or it threw: `'ask'` a person (the
   * job is discarded until somebody decides), `'repeat'` with the same idempotency key, or a function that asks the
   * provider. Default: `'ask'`.
   */
  readonly ifUncertain?: IfUncertain<T> | undefined
  /** How long to wait for a call of the same effect that is under way elsewhere, in milliseconds: 0 to 24 h. Default: 30,000. */
  readonly waitMs?: number | undefined
  /**
   * True for an error of the function that means that the effect certainly did not take place. What it throws counts as
   * false. Default: for none; see `notHappened`.
   */
  readonly notHappened?: ((error: unknown) => boolean) | undefined
}

/** Options of an effect, checked; the key may be missing. */
export interface CheckedOptions {
  readonly key: string | undefined
  readonly ifUncertain: IfUncertain<unknown>
  readonly waitMs: number
  readonly notHappened: (error: unknown) => boolean
}

/** @throws {InvalidArgumentError} An option is of the wrong type or out of range; names the field. */
export function checkEffectOptions<T>(options: EffectOptions<T> | undefined, fn: unknown): CheckedOptions {
  if (typeof options !== 'object' || options === null) {
    throw new InvalidArgumentError({ field: 'options', problem: 'must be an object, such as { key }' })
  }
  if (typeof fn !== 'function')
    throw new InvalidArgumentError({ field: 'fn', problem: 'must be a function that calls the outside' })
  const { ifUncertain = 'ask', notHappened = () => false } = options
  if (ifUncertain !== 'ask' && ifUncertain !== 'repeat' && typeof ifUncertain !== 'function') {
    throw new InvalidArgumentError({ field: 'ifUncertain', problem: 'must be "ask", "repeat" or a function' })
  }
  if (typeof notHappened !== 'function')
    throw new InvalidArgumentError({ field: 'notHappened', problem: 'must be a function' })
  return {
    key: checkKey('key', options.key),
    ifUncertain: ifUncertain as IfUncertain<unknown>,
    waitMs: checkNumber('waitMs', options.waitMs, limits.effectWaitMs),
    notHappened,
  }
}

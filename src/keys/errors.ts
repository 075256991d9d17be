import { HoldfastError } from '../base/errors.ts'

/**
 * The value of a key is not what it was asked as: no whole number, no JSON, no text. From `increment` also: the sum would
 * not fit into 64 bits. Nothing was changed.
 */
export class KeyValueError extends HoldfastError {
  override readonly name = 'KeyValueError'
  readonly code = 'KEY_VALUE'
  readonly key: string
  /** What is wrong with it, worded to follow "the value of …"; never the value. */
  readonly problem: string

  constructor(facts: { readonly key: string; readonly problem: string }, options?: ErrorOptions) {
    super(`the value of "${facts.key}" ${facts.problem}`, options)
    this.key = facts.key
    this.problem = facts.problem
  }
}

/** The hold has run out or was released: what it kept may be gone, so nothing was read. Take a new one. */
export class KeyHoldExpiredError extends HoldfastError {
  override readonly name = 'KeyHoldExpiredError'
  readonly code = 'KEY_HOLD_EXPIRED'
  readonly holder: string

  constructor(facts: { readonly holder: string }, options?: ErrorOptions) {
    super(
      `the hold of "${facts.holder}" has run out; renew it in time, or give it a longer "leaseMs"`,
      options,
    )
    this.holder = facts.holder
  }
}

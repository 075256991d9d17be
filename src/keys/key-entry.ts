import { KeyValueError } from './errors.ts'

const MIN = -(2n ** 63n)
const MAX = 2n ** 63n - 1n

/** What an entry is made from. */
export interface EntryFacts {
  readonly key: string
  readonly value: Uint8Array
  readonly revision: bigint
  readonly expiresAt: Date | null
  readonly modifiedAt: Date
}

/** A key with its value, as it was read: it does not change afterwards. */
export class KeyEntry {
  readonly key: string
  readonly value: Uint8Array
  /** Grows by one with each set and delete of the key; 0 for the first set. Never used twice. */
  readonly revision: bigint
  /** When the key ends by itself; `null`: never, or not told (a read of an old revision). */
  readonly expiresAt: Date | null
  /** When the value was set, to the millisecond, by the database's clock. */
  readonly modifiedAt: Date

  /** @internal */
  constructor(facts: EntryFacts) {
    this.key = facts.key
    this.value = facts.value
    this.revision = facts.revision
    this.expiresAt = facts.expiresAt
    this.modifiedAt = facts.modifiedAt
  }

  /**
   * The value as text.
   *
   * @throws {KeyValueError} It is not UTF-8.
   */
  text(): string {
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(this.value)
    } catch (cause) {
      throw new KeyValueError({ key: this.key, problem: 'is not text in UTF-8' }, { cause })
    }
  }

  /**
   * The value as JSON. What it holds is not checked.
   *
   * @throws {KeyValueError} It is no JSON.
   */
  json<T = unknown>(): T {
    try {
      return JSON.parse(this.text()) as T
    } catch (cause) {
      throw new KeyValueError({ key: this.key, problem: 'is not JSON' }, { cause })
    }
  }

  /**
   * The value as a whole number of 64 bits, exactly: decimal digits with or without a sign.
   *
   * @throws {KeyValueError} It is none.
   */
  integer(): bigint {
    const text = this.value.length <= 20 ? this.text() : ''
    const number = /^[+-]?\d+$/.test(text) ? BigInt(text.replace('+', '')) : undefined
    if (number === undefined || number < MIN || number > MAX) {
      throw new KeyValueError({ key: this.key, problem: 'is not a whole number of 64 bits' })
    }
    return number
  }

  /**
   * The value as a boolean: the texts `true` and `false`.
   *
   * @throws {KeyValueError} It is neither.
   */
  boolean(): boolean {
    const text = this.value.length <= 5 ? this.text() : ''
    if (text !== 'true' && text !== 'false') {
      throw new KeyValueError({ key: this.key, problem: 'is neither "true" nor "false"' })
    }
    return text === 'true'
  }
}

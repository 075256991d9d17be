import { ScriptValueError } from './errors.ts'

/** What the last statement of a script that ran came to. `none`: it had nothing to tell. */
export type ScriptResultType =
  | 'none'
  | 'set'
  | 'notset'
  | 'get'
  | 'exists'
  | 'doesnotexist'
  | 'deleted'
  | 'extended'

/** One value that a script gave. */
export interface ScriptValue {
  /** Null for a value that the script made. */
  readonly key: string | null
  readonly value: Uint8Array
  /** -1 for a value that the script made. */
  readonly revision: bigint
  /** Null: it does not expire. */
  readonly expiresAt: Date | null
  /** Null where it is not known: what went through a variable has lost it. */
  readonly modifiedAt: Date | null
}

export interface ScriptResultFacts {
  readonly type: ScriptResultType
  readonly revision: bigint
  readonly values: readonly ScriptValue[]
  readonly elapsedMs: number
}

/** The answer of a script. */
export class ScriptResult {
  readonly type: ScriptResultType
  /** Of the key that the last statement was about, or of the first value; -1 where there is none. */
  readonly revision: bigint
  /** What was got or returned: one value, or the items of a listing or array. Writes give none. */
  readonly values: readonly ScriptValue[]
  /** From the call to the answer, in milliseconds. */
  readonly elapsedMs: number

  constructor({ type, revision, values, elapsedMs }: ScriptResultFacts) {
    this.type = type
    this.revision = revision
    this.values = values
    this.elapsedMs = elapsedMs
  }

  /** The first value; null if there is none. A returned `null` is an empty value. */
  get value(): Uint8Array | null {
    return this.values[0]?.value ?? null
  }

  /**
   * The first value as text; null if there is none.
   *
   * @throws {ScriptValueError} It is not UTF-8.
   */
  text(): string | null {
    const { value } = this
    if (value === null) return null
    try {
      return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(value)
    } catch (cause) {
      throw new ScriptValueError('UTF-8', { cause })
    }
  }

  /**
   * The first value, parsed as JSON; null if there is none.
   *
   * @throws {ScriptValueError} It is not JSON.
   */
  json(): unknown {
    const text = this.text()
    if (text === null) return null
    try {
      return JSON.parse(text)
    } catch (cause) {
      throw new ScriptValueError('JSON', { cause })
    }
  }

  /**
   * The first value as an integer; null if there is none.
   *
   * @throws {ScriptValueError} It is not the text of an integer.
   */
  integer(): bigint | null {
    const text = this.text()
    if (text === null) return null
    if (!/^[+-]?[0-9]+$/.test(text)) throw new ScriptValueError('an integer')
    return BigInt(text.replace(/^\+/, ''))
  }

  /**
   * The first value as a boolean; null if there is none.
   *
   * @throws {ScriptValueError} It is neither `true` nor `false`.
   */
  boolean(): boolean | null {
    const text = this.text()
    if (text === null) return null
    if (text !== 'true' && text !== 'false') throw new ScriptValueError('"true" or "false"')
    return text === 'true'
  }
}

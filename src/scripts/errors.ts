import { HoldfastError } from '../base/errors.ts'

/** The script is not of the language. Nothing was run. */
export class ScriptSyntaxError extends HoldfastError {
  override readonly name = 'ScriptSyntaxError'
  readonly code = 'SCRIPT_SYNTAX'
  /** From 1. */
  readonly line: number
  /** From 1, in characters; a tab is one. */
  readonly column: number
  readonly problem: string
  /** The line of the script, and a second one with `^` under the place. */
  readonly excerpt: string

  constructor(
    facts: {
      readonly line: number
      readonly column: number
      readonly problem: string
      readonly excerpt: string
    },
    options?: ErrorOptions,
  ) {
    super(`line ${facts.line}, column ${facts.column}: ${facts.problem}\n${facts.excerpt}`, options)
    this.line = facts.line
    this.column = facts.column
    this.problem = facts.problem
    this.excerpt = facts.excerpt
  }
}

/** What went wrong when a script ran. */
export type ScriptErrorReason =
  | 'undefined-variable'
  | 'undefined-parameter'
  | 'undefined-function'
  | 'arity'
  | 'argument-type'
  | 'operand-type'
  | 'cast'
  | 'overflow'
  | 'division-by-zero'
  | 'number-format'
  | 'number-range'
  | 'bad-index'
  | 'not-iterable'
  | 'bad-key'
  | 'bad-expiry'
  | 'bad-sleep'
  | 'bad-option'
  | 'array-not-storable'
  | 'nested-array'
  | 'not-text'
  | 'no-previous-write'
  | 'nested-transaction'
  | 'no-transaction'
  | 'invalid-input'
  | 'too-many-steps'
  | 'too-large'

/** A statement of the script failed: a name that is not known, operands that do not fit, a number out of range. All that the script did was undone. */
export class ScriptError extends HoldfastError {
  override readonly name = 'ScriptError'
  readonly code = 'SCRIPT_ERROR'
  readonly reason: ScriptErrorReason
  /** Of the script, from 1. */
  readonly line: number
  readonly problem: string

  constructor(
    facts: { readonly reason: ScriptErrorReason; readonly line: number; readonly problem: string },
    options?: ErrorOptions,
  ) {
    super(`line ${facts.line} of the script: ${facts.problem}`, options)
    this.reason = facts.reason
    this.line = facts.line
    this.problem = facts.problem
  }
}

/** The script itself said `throw`. All that it did was undone. */
export class ScriptThrownError extends HoldfastError {
  override readonly name = 'ScriptThrownError'
  readonly code = 'SCRIPT_THROWN'
  /** What was thrown; `(null)` for null. */
  readonly text: string
  /** Of the `throw`, from 1. */
  readonly line: number

  constructor(facts: { readonly text: string; readonly line: number }, options?: ErrorOptions) {
    super(`${facts.text} (thrown in line ${facts.line} of the script)`, options)
    this.text = facts.text
    this.line = facts.line
  }
}

/**
 * Why a script was given up: its own `rollback`, a `begin` block that ended without `commit`, a key that stayed locked,
 * its time was up, another transaction won, a write in a block with a snapshot.
 */
export type ScriptAbortReason =
  | 'rollback'
  | 'no-commit'
  | 'lock-timeout'
  | 'timeout'
  | 'conflict'
  | 'read-only-snapshot'

const ABORTED: Readonly<Record<ScriptAbortReason, string>> = {
  rollback: 'the script rolled itself back',
  'no-commit': 'the block ended without commit, so that what it did was discarded',
  'lock-timeout': 'a key that the script needs stayed locked by another transaction; try again',
  timeout: 'the time of the script was up',
  conflict: 'another transaction stood in the way; try again',
  'read-only-snapshot': 'a block with a snapshot must not write',
}

/** The script was given up. All that it did was undone. */
export class ScriptAbortedError extends HoldfastError {
  override readonly name = 'ScriptAbortedError'
  readonly code = 'SCRIPT_ABORTED'
  readonly reason: ScriptAbortReason
  /** Where the script was, from 1. */
  readonly line: number

  constructor(facts: { readonly reason: ScriptAbortReason; readonly line: number }, options?: ErrorOptions) {
    super(`${ABORTED[facts.reason]} (line ${facts.line} of the script)`, options)
    this.reason = facts.reason
    this.line = facts.line
  }
}

/** The value that a script gave is not of the kind that was asked for. What the script did stands. */
export class ScriptValueError extends HoldfastError {
  override readonly name = 'ScriptValueError'
  readonly code = 'SCRIPT_VALUE'

  /** @param wanted What the value should have been. */
  constructor(wanted: string, options?: ErrorOptions) {
    super(`the value that the script gave is not ${wanted}`, options)
  }
}

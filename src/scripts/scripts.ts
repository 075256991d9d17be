import { checkName, checkNumber } from '../base/check.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import { limits } from '../base/limits.ts'
import { type Row, runOne } from '../driver/operation.ts'
import type { Reach } from '../driver/reach.ts'
import { retryTransaction } from '../driver/transaction.ts'
import { checkParams, type ScriptParams } from './params.ts'
import { callOf, type Prepared, prepareScript } from './prepare.ts'
import { errorOf } from './problem.ts'
import { ScriptResult, type ScriptResultType, type ScriptValue } from './result.ts'
import { runScript } from './sql/run-script.ts'

/** How a script is run. */
export interface ScriptOptions {
  /**
   * A transaction of any known driver: the script is part of it, and if it fails, only the script is undone. Default: one of
   * its own.
   */
  readonly tx?: unknown
  /** Whose keys. Default: nobody's. */
  readonly tenant?: string
  /** Looked at before the script is sent, and before each new try; one under way runs to its end or timeout. Default: none. */
  readonly signal?: AbortSignal
  /** How long to wait for a key that another transaction has locked: 0 to 300,000 milliseconds. Default: 1,000. */
  readonly lockWaitMs?: number
  /** How long it may run: 1 to 300,000 milliseconds. Default: 5,000. `begin (timeout=…)` in the script goes before it. */
  readonly timeoutMs?: number
}

const TYPES: readonly ScriptResultType[] = [
  'none',
  'set',
  'notset',
  'get',
  'exists',
  'doesnotexist',
  'deleted',
  'extended',
]

/** Parsed scripts that are kept. */
const KEPT_SCRIPTS = 500
/** Longer ones are parsed anew: what is kept is bounded by their number. */
const KEPT_CHARACTERS = 64 * 1024
/** For the way to the database and back, and for what comes before and after the script there. */
const MARGIN_MS = 10_000

/** Runs scripts. */
export class Scripts {
  readonly #reach: Reach
  readonly #prepared = new Map<string, Prepared>()

  constructor(reach: Reach) {
    this.#reach = reach
  }

  /** See {@link App.script}. */
  async run(text: string, params?: ScriptParams, options: ScriptOptions = {}): Promise<ScriptResult> {
    const started = performance.now()
    const prepared = this.#prepare(text)
    const texts = checkParams(params)
    const lockWaitMs = checkNumber('lockWaitMs', options.lockWaitMs, limits.lockWaitMs)
    const givenMs = checkNumber('timeoutMs', options.timeoutMs, limits.scriptTimeoutMs)
    const tenant = options.tenant === undefined ? '' : checkName('tenant', options.tenant)
    const { signal, tx } = options
    signal?.throwIfAborted()
    const { program, code } = prepared
    const timeoutMs = program.timeoutMs ?? givenMs
    const call = callOf(prepared, texts)
    const database = this.#reach.at(tx)
    const sent = {
      tenant,
      code,
      ...call,
      lockWaitMs,
      timeoutMs,
      inTransaction: tx !== undefined,
    }
    const deadlineMs = timeoutMs + lockWaitMs + MARGIN_MS
    const send = async () =>
      await runOne(database, runScript, sent, { deadlineMs, repeatable: !program.writes })
    const row = tx === undefined ? await retryTransaction(send, signal) : await send()
    if (row.reason !== null) throw errorOf({ reason: row.reason, detail: row.detail, at: row.at }, program)
    return resultOf(row, performance.now() - started)
  }

  #prepare(text: unknown): Prepared {
    if (typeof text !== 'string') throw new InvalidArgumentError({ field: 'script', problem: 'must be text' })
    const known = this.#prepared.get(text)
    if (known !== undefined) {
      // The newest stand last: the first is the one that was not used for longest.
      this.#prepared.delete(text)
      this.#prepared.set(text, known)
      return known
    }
    const { max } = limits.scriptBytes
    if (text.length > max || Buffer.byteLength(text) > max)
      throw new InvalidArgumentError({ field: 'script', problem: `may have ${max} bytes of UTF-8` })
    const prepared = prepareScript(text)
    if (text.length <= KEPT_CHARACTERS) {
      this.#prepared.set(text, prepared)
      if (this.#prepared.size > KEPT_SCRIPTS)
        this.#prepared.delete(this.#prepared.keys().next().value as string)
    }
    return prepared
  }
}

/** An item of a listing or array, as the interpreter gives it. Numbers beyond 53 bits are text. */
type Item = readonly [
  key: string | null,
  hex: string,
  revision: string,
  expiresAt: number | null,
  modifiedAt: number | null,
]

function resultOf(row: Row<typeof runScript>, elapsedMs: number): ScriptResult {
  const values = valuesOf(row)
  const revision = row.revision ?? values[0]?.revision ?? -1n
  return new ScriptResult({ type: TYPES[row.answer] as ScriptResultType, revision, values, elapsedMs })
}

function valuesOf(row: Row<typeof runScript>): readonly ScriptValue[] {
  if (row.items !== null)
    return (row.items as readonly Item[]).map(([key, hex, revision, expiresAt, modifiedAt]) => ({
      key,
      value: bytesOf(hex),
      revision: BigInt(revision),
      expiresAt: dateOf(expiresAt),
      modifiedAt: dateOf(modifiedAt),
    }))
  if (row.value === null) return []
  const { key, value } = row
  const expiresAt = dateOf(row.expiresAt)
  const modifiedAt = dateOf(row.modifiedAt)
  return [{ key, value: bytesOf(value), revision: row.revision ?? -1n, expiresAt, modifiedAt }]
}

function bytesOf(hex: string): Uint8Array {
  return Uint8Array.from(Buffer.from(hex, 'hex'))
}

function dateOf(time: number | bigint | null): Date | null {
  return time === null ? null : new Date(Number(time))
}

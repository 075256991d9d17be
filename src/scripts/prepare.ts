import { limits } from '../base/limits.ts'
import { compileScript } from './compiler.ts'
import { ScriptError } from './errors.ts'
import { floatText } from './number-text.ts'
import { parseScript } from './parser.ts'
import { parameterError } from './problem.ts'
import type { Program, ProgramLock } from './program.ts'
import type { Constant } from './syntax.ts'

/** Keys that are ours start so. */
const RESERVED = '__holdfast:'

/** A program and what of a call of it is the same every time. */
export interface Prepared {
  readonly program: Program
  readonly code: string
  readonly kinds: readonly number[]
  readonly vals: readonly string[]
}

/** What a call of a program sends, beside limits. */
export interface Call {
  readonly kinds: string
  readonly vals: readonly string[]
  readonly keys: readonly string[]
  readonly lockNames: string | null
  readonly lockModes: string | null
  readonly lockWrites: string | null
}

/**
 * Parses and compiles a script.
 *
 * @throws {ScriptSyntaxError} It is not of the language.
 * @throws {ScriptError} It can be seen to fail whatever the parameters are.
 */
export function prepareScript(text: string): Prepared {
  const program = compileScript(parseScript(text))
  return {
    program,
    code: `{${program.code.join(',')}}`,
    kinds: program.constants.map(kindOf),
    vals: program.constants.map(textOf),
  }
}

/**
 * Puts the parameters in.
 *
 * @throws {ScriptError} A parameter that names a key is missing, or is no key.
 */
export function callOf({ program, kinds, vals }: Prepared, params: ReadonlyMap<string, string>): Call {
  const ownKinds = [...kinds]
  const ownVals = [...vals]
  for (const [register, name] of program.parameters) {
    const text = params.get(name)
    if (text === undefined) continue
    ownKinds[register - 1] = TEXT
    ownVals[register - 1] = text
  }
  const keys = program.keys.map((key) => {
    const text = key.isParameter ? params.get(key.text) : key.text
    if (text === undefined) throw parameterError(key.text, key.line)
    const problem = problemOfKey(text, key.isListing)
    if (problem !== undefined) {
      const reason = text === '' && !key.isParameter ? 'bad-key' : 'invalid-input'
      throw new ScriptError({ reason, line: key.line, problem })
    }
    return text
  })
  return {
    kinds: `{${ownKinds.join(',')}}`,
    vals: ownVals,
    keys,
    ...locksOf(program.locks, keys),
  }
}

function problemOfKey(text: string, isListing: boolean): string | undefined {
  const { max } = limits.uniqueKeyBytes
  if (Buffer.byteLength(text) > max) return `a key may have ${max} bytes of UTF-8`
  if (isListing) return undefined
  if (text === '') return 'a key must not be empty'
  return text.startsWith(RESERVED) ? `keys must not start with "${RESERVED}", which is reserved` : undefined
}

interface NamedLock {
  readonly name: string
  readonly bytes: Buffer
  readonly ephemeral: boolean
  readonly writes: boolean
  /** As `script_run` has it. */
  readonly mode: number
}

/** Persistent ones first, each name space in byte order: scripts that lock the same things do not lock each other out. */
function locksOf(
  locks: readonly ProgramLock[],
  keys: readonly string[],
): Pick<Call, 'lockNames' | 'lockModes' | 'lockWrites'> {
  if (locks.length === 0) return { lockNames: null, lockModes: null, lockWrites: null }
  const ordered = locks
    .map((lock): NamedLock => {
      const { ephemeral, writes, listing } = lock
      const text = keys[lock.key - 1] as string
      const name = listing === 'bucket' ? `${text}/` : text
      const mode = (ephemeral ? 1 : 0) + (listing === undefined ? 0 : 2)
      return { name, bytes: Buffer.from(name), ephemeral, writes, mode }
    })
    .sort(
      (one, other) =>
        Number(one.ephemeral) - Number(other.ephemeral) || Buffer.compare(one.bytes, other.bytes),
    )
  const quoted = ordered.map(({ name }) => `"${name.replace(/["\\]/g, '\\$&')}"`)
  return {
    lockNames: `{${quoted.join(',')}}`,
    lockModes: `{${ordered.map(({ mode }) => mode).join(',')}}`,
    lockWrites: `{${ordered.map(({ writes }) => (writes ? 't' : 'f')).join(',')}}`,
  }
}

const NOTHING = -1
const TEXT = 4

function kindOf(value: Constant | undefined): number {
  if (value === undefined) return NOTHING
  if (value === null) return 0
  if (typeof value === 'boolean') return 1
  if (typeof value === 'bigint') return 2
  return typeof value === 'number' ? 3 : TEXT
}

function textOf(value: Constant | undefined): string {
  if (value === undefined || value === null) return ''
  return typeof value === 'number' ? floatText(value) : String(value)
}

import type { ScriptAbortReason, ScriptErrorReason } from './errors.ts'
import type { Constant } from './syntax.ts'

/** Instructions of the interpreter in `sql/migrations/0007-scripts.sql`, which tells their operands. */
export const Op = {
  get: 1,
  set: 2,
  ifNot: 3,
  compare: 4,
  arithmetic: 5,
  move: 6,
  call: 7,
  jump: 8,
  return: 9,
  end: 10,
  not: 11,
  logic: 12,
  logicEnd: 13,
  negate: 14,
  range: 15,
  index: 16,
  for: 17,
  next: 18,
  array: 19,
  read: 20,
  list: 21,
  delete: 22,
  extend: 23,
  sleep: 24,
  clear: 25,
  status: 26,
  throw: 27,
  stop: 28,
} as const

/** Flags of the instructions on keys. */
export const Flag = {
  ephemeral: 1,
  /** Of reads: inside an expression, so that it is not the newest answer. */
  quiet: 2,
  nx: 2,
  exists: 4,
  prefix: 4,
  xx: 4,
  at: 8,
  norev: 8,
  asOf: 16,
  ttl: 16,
  cmp: 32,
  cmprev: 64,
} as const

/** A key that a script names: the text, or the parameter that gives it. */
export interface ProgramKey {
  readonly text: string
  readonly isParameter: boolean
  /** What it names is a bucket or prefix: any text is one. */
  readonly isListing: boolean
  /** Where it is named first. */
  readonly line: number
}

/** What is locked before the script starts. */
export interface ProgramLock {
  /** Position in {@link Program.keys}. */
  readonly key: number
  readonly ephemeral: boolean
  readonly writes: boolean
  /** Of a listing: what is locked is all that starts so. A bucket ends with a slash. */
  readonly listing: 'bucket' | 'prefix' | undefined
}

/** Why an instruction ends the script, where the compiler knows it. */
export type Stop =
  | { readonly abort: ScriptAbortReason }
  | { readonly reason: ScriptErrorReason; readonly problem: string }

/** What the interpreter runs, and what tells an error of it in terms of the script. */
export interface Program {
  readonly code: readonly number[]
  /** Registers, from 1: what each starts with. Empty: it has no value yet. */
  readonly constants: readonly (Constant | undefined)[]
  readonly parameters: ReadonlyMap<number, string>
  readonly variables: ReadonlyMap<number, string>
  readonly keys: readonly ProgramKey[]
  readonly locks: readonly ProgramLock[]
  /** Instructions by where they start in the code, from 1, in order, with their lines. */
  readonly places: readonly (readonly [at: number, line: number])[]
  readonly stops: ReadonlyMap<number, Stop>
  /** Names of the functions called. */
  readonly calls: ReadonlyMap<number, string>
  readonly timeoutMs: number | undefined
  /** False: a repetition does no harm. */
  readonly writes: boolean
}

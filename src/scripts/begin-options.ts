import { limits } from '../base/limits.ts'
import { ScriptError } from './errors.ts'
import type { BeginOption, Constant } from './syntax.ts'

/** What `begin` asks for. */
export interface TransactionOptions {
  readonly locking: 'pessimistic' | 'optimistic'
  readonly autoCommit: boolean
  readonly timeoutMs: number | undefined
  /** Plain reads are as of this instant, in epoch milliseconds. */
  readonly snapshot: bigint | undefined
}

export const implicitTransaction: TransactionOptions = {
  locking: 'pessimistic',
  autoCommit: true,
  timeoutMs: undefined,
  snapshot: undefined,
}

const KNOWN = ['locking', 'autoCommit', 'asyncRelease', 'timeout', 'admissionWait', 'snapshot', 'priority']
const PRIORITIES = ['background', 'low', 'normal', 'high', 'critical']

/**
 * Reads the options of `begin`. `asyncRelease`, `admissionWait` and `priority` are checked and have no effect: locks go
 * with the commit, and no transaction waits to be admitted.
 *
 * @throws {ScriptError} An option that is not known, given twice, or with a value that it does not take.
 */
export function readBeginOptions(options: readonly BeginOption[]): TransactionOptions {
  const values = new Map<string, BeginOption>()
  for (const option of options) {
    if (!KNOWN.includes(option.name))
      throw bad(option, `is no option of begin; those are ${KNOWN.join(', ')}`)
    if (values.has(option.name)) throw bad(option, 'is given twice')
    if (option.value === undefined) throw bad(option, 'takes a word or literal, not a parameter')
    values.set(option.name, option)
  }
  const locking = word(values.get('locking'), ['pessimistic', 'optimistic'])
  word(values.get('priority'), PRIORITIES)
  truth(values.get('asyncRelease'))
  whole(values.get('admissionWait'), 0n)
  const timeout = whole(values.get('timeout'), 1n)
  const { max } = limits.scriptTimeoutMs
  return {
    locking: locking === 'optimistic' ? 'optimistic' : 'pessimistic',
    autoCommit: truth(values.get('autoCommit')) ?? false,
    timeoutMs: timeout === undefined ? undefined : Number(timeout > max ? max : timeout),
    snapshot: whole(values.get('snapshot'), 1n),
  }
}

function word(option: BeginOption | undefined, allowed: readonly string[]): string | undefined {
  if (option === undefined) return undefined
  const { value } = option
  if (typeof value !== 'string' || !allowed.includes(value))
    throw bad(option, `must be one of ${allowed.join(', ')}`)
  return value
}

function truth(option: BeginOption | undefined): boolean | undefined {
  if (option === undefined) return undefined
  const { value } = option
  if (value === true || value === 'true' || value === 'yes') return true
  if (value === false || value === 'false' || value === 'no') return false
  throw bad(option, 'must be one of true, false, yes, no')
}

function whole(option: BeginOption | undefined, least: bigint): bigint | undefined {
  if (option === undefined) return undefined
  const value = integerOf(option.value)
  if (value === undefined || value < least) throw bad(option, `must be a whole number from ${least} on`)
  return value
}

function integerOf(value: Constant | undefined): bigint | undefined {
  if (typeof value === 'bigint') return value
  return typeof value === 'string' && /^[0-9]{1,18}$/.test(value) ? BigInt(value) : undefined
}

function bad({ name, line }: BeginOption, problem: string): ScriptError {
  return new ScriptError({ reason: 'bad-option', line, problem: `${name} ${problem}` })
}

import {
  ScriptAbortedError,
  type ScriptAbortReason,
  ScriptError,
  type ScriptErrorReason,
  ScriptThrownError,
} from './errors.ts'
import type { Program } from './program.ts'

/** What the interpreter says of a script that failed. */
export interface Failure {
  readonly reason: string
  readonly detail: string | null
  /** Where in the code it was. */
  readonly at: number
}

/** Sentences for reasons that need no more than the reason. */
const PROBLEMS: Readonly<Record<string, string>> = {
  'operand-type': 'the operands do not fit the operator',
  cast: 'the value cannot be turned into this type',
  overflow: 'the number does not fit: an integer has 64 bits',
  'division-by-zero': 'division by zero',
  'number-format': 'a revision or an instant must be a whole number',
  'number-range': 'round takes 0 to 15 digits',
  'bad-index': 'an index takes an array and a whole number, from 0 and below the count of its items',
  'not-iterable': 'only arrays and ranges have items',
  'bad-expiry': 'a time to live must be a whole number of milliseconds',
  'bad-sleep': 'sleep takes a whole number of milliseconds from 0 to 300000',
  'array-not-storable': 'an array is no text: it can be neither stored nor thrown',
  'nested-array': 'an array cannot hold arrays',
  'not-text': 'the value is not UTF-8 text; a script can only pass such a value on as the answer of "get"',
  'no-previous-write': '"not set" asks about the write before it, and there was none',
  'too-many-steps': 'the script takes more than 1000000 steps',
}

/** What was meant by an operator, where it alone says too little. */
const OPERANDS: Readonly<Record<string, string>> = {
  arithmetic: 'arithmetic takes numbers, or a number and a text that is one',
  order: '"<", "<=", ">" and ">=" take numbers, or a number and a text that is one',
  equality: 'values of these kinds cannot be equal: text and number compare only if the text is a number',
  logic: '"&&" and "||" take two booleans or two numbers',
  not: '"not" does not take an array',
  range: '".." takes two integers',
}

const TOO_LARGE: Readonly<Record<string, string>> = {
  text: 'the text is longer than 16 MiB',
  arrays: 'arrays have more than 100000 items together',
  listing: 'the listing has more than 100000 keys, or more than 64 MiB',
  range: 'the range has more than 100000 numbers',
}

/** The error that a failure is for the caller of the script. */
export function errorOf(failure: Failure, program: Program): Error {
  const { reason, at } = failure
  const line = lineOf(program, at)
  const detail = failure.detail ?? ''
  if (reason === 'throw') return new ScriptThrownError({ text: detail, line })
  if (reason.startsWith('abort:'))
    return new ScriptAbortedError({ reason: reason.slice('abort:'.length) as ScriptAbortReason, line })
  const stop = reason === 'stop' ? program.stops.get(at) : undefined
  if (stop !== undefined)
    return 'abort' in stop
      ? new ScriptAbortedError({ reason: stop.abort, line })
      : new ScriptError({ ...stop, line })
  if (reason === 'undefined') return undefinedError(Number(detail), program, line)
  const problem = problemOf(reason, detail, program.calls.get(at))
  if (problem === undefined)
    return new Error(`holdfast: a script failed by ${reason}; this is a fault of ours`)
  return new ScriptError({ reason: reason as ScriptErrorReason, line, problem })
}

function problemOf(reason: string, detail: string, call: string | undefined): string | undefined {
  switch (reason) {
    case 'argument-type':
      return `${call ?? 'the function'} does not take a value of this type`
    case 'cast':
      return `${call ?? 'the function'} cannot turn this value into its type`
    case 'operand-type':
      return OPERANDS[detail] ?? PROBLEMS[reason]
    case 'too-large':
      return TOO_LARGE[detail]
    case 'invalid-input':
      if (detail === 'ttl') return 'a time to live must be from 0 to 2147483647 ms'
      if (detail === 'instant') return 'an instant must be in milliseconds since 1970, and not 0'
      return detail.replace(': ', ' ')
    default:
      return PROBLEMS[reason]
  }
}

function undefinedError(register: number, program: Program, line: number): ScriptError {
  const parameter = program.parameters.get(register)
  if (parameter !== undefined) return parameterError(parameter, line)
  const variable = program.variables.get(register) ?? ''
  return new ScriptError({
    reason: 'undefined-variable',
    line,
    problem: `the variable "${variable}" has no value yet`,
  })
}

export function parameterError(name: string, line: number): ScriptError {
  return new ScriptError({
    reason: 'undefined-parameter',
    line,
    problem: `the parameter "@${name}" was not given`,
  })
}

/** Line of the instruction that starts at `at`. */
function lineOf({ places }: Program, at: number): number {
  let low = 0
  let high = places.length - 1
  while (low < high) {
    const middle = (low + high + 1) >> 1
    if ((places[middle]?.[0] ?? 0) <= at) low = middle
    else high = middle - 1
  }
  return places[low]?.[1] ?? 1
}

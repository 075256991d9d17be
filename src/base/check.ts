import { InvalidArgumentError } from './errors.ts'
import { type Limit, limits } from './limits.ts'

/** Control characters and line separators: what would break a log line, a terminal or a list. */
const CONTROL = /[\p{Cc}\u2028\u2029]/u
const LONE_SURROGATE = /\p{Cs}/u

/** 4713 BC: the first instant of PostgreSQL's calendar. */
const EARLIEST_MS = -210_866_803_200_000
/** End of the year 9999. Beyond it ISO 8601 changes shape; beyond 140,000 AD milliseconds are rounded. */
const LATEST_MS = 253_402_300_799_999

/**
 * Checks a number against its documented range; left out, it is the limit's default.
 *
 * @throws {InvalidArgumentError} Not a number, not finite, a fraction where none is allowed, or out of range.
 */
export function checkNumber<L extends Limit>(
  field: string,
  value: unknown,
  limit: L,
): L['default'] extends number ? number : number | undefined {
  type Checked = L['default'] extends number ? number : number | undefined
  if (value === undefined) return limit.default as Checked
  const range = `from ${limit.min} to ${limit.max} (${limit.unit})`
  const wanted = `must be a ${limit.integer ? 'whole ' : ''}number ${range}`
  if (typeof value !== 'number') throw invalid(field, `${wanted}, not ${describe(value)}`)
  if (!(value >= limit.min && value <= limit.max) || (limit.integer && !Number.isInteger(value))) {
    throw invalid(field, `${wanted}, not ${value}`)
  }
  return (value === 0 ? 0 : value) as Checked
}

/**
 * Checks a name of a job, queue, worker and the like: 1 to 255 bytes of UTF-8, kept as given.
 *
 * @throws {InvalidArgumentError} Not text, blank, too long, with control characters or a lone surrogate.
 */
export function checkName(field: string, value: unknown): string {
  return checkText(field, value, limits.nameBytes.max)
}

/**
 * Checks a unique, idempotency or lock key: 1 to 1,024 bytes of UTF-8 on one line, compared byte by byte.
 *
 * @returns The key; `undefined` if `value` is `undefined` or `null`, which mean none.
 * @throws {InvalidArgumentError} Not text, blank, too long, with control characters or a lone surrogate.
 */
export function checkKey(field: string, value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined
  return checkText(field, value, limits.uniqueKeyBytes.max)
}

/**
 * Checks an instant: a valid `Date` from 4713 BC to the end of the year 9999, which is what is stored
 * and read back to the millisecond.
 *
 * @throws {InvalidArgumentError} Not a Date, an invalid one, or out of range.
 */
export function checkInstant(field: string, value: unknown): Date {
  if (!(value instanceof Date)) throw invalid(field, `must be a Date, not ${describe(value)}`)
  const time = value.getTime()
  if (Number.isNaN(time)) throw invalid(field, 'must be a valid Date, not an invalid one')
  if (time < EARLIEST_MS || time > LATEST_MS) {
    throw invalid(field, 'must be from 4713 BC to the end of the year 9999')
  }
  return value
}

/**
 * Checks the name of the schema our tables are in: 1 to 63 bytes of UTF-8, so that PostgreSQL does not cut it.
 *
 * @throws {InvalidArgumentError} Also for names that start with `pg_` (PostgreSQL's own) and names with `$`
 *   (they would end the quoting of function bodies).
 */
export function checkSchemaName(field: string, value: unknown): string {
  const name = checkText(field, value, limits.schemaBytes.max)
  if (name.startsWith('pg_'))
    throw invalid(field, 'must not start with "pg_", which PostgreSQL keeps for itself')
  if (name.includes('$')) throw invalid(field, 'must not contain "$"')
  return name
}

/** The ends of a 64-bit number. */
export const INT8 = { min: -(2n ** 63n), max: 2n ** 63n - 1n } as const

/**
 * Checks a 64-bit number: a bigint, or a number that is exact.
 *
 * @throws {InvalidArgumentError} Neither of both, or out of range.
 */
export function checkInt8(
  field: string,
  value: unknown,
  range: { readonly min: bigint; readonly max: bigint } = INT8,
): bigint {
  const isNumber = typeof value === 'number'
  if (!isNumber && typeof value !== 'bigint')
    throw invalid(field, `must be a bigint or a whole number, not ${describe(value)}`)
  if (isNumber && !Number.isSafeInteger(value))
    throw invalid(field, `must be whole and exact; give a bigint beyond ${Number.MAX_SAFE_INTEGER}`)
  const exact = BigInt(value)
  if (exact < range.min || exact > range.max)
    throw invalid(field, `must be from ${range.min} to ${range.max}, not ${exact}`)
  return exact
}

/**
 * Checks that `value` is one of `allowed`.
 *
 * @throws {InvalidArgumentError} It is something else.
 */
export function checkOneOf<const T extends string>(field: string, value: unknown, allowed: readonly T[]): T {
  const found = allowed.find((item) => item === value)
  if (found === undefined) throw invalid(field, `must be one of ${allowed.join(', ')}`)
  return found
}

function checkText(field: string, value: unknown, maxBytes: number): string {
  if (typeof value !== 'string') throw invalid(field, `must be text, not ${describe(value)}`)
  if (value.trim() === '') throw invalid(field, 'must not be empty or blank')
  const bytes = Buffer.byteLength(value)
  if (bytes > maxBytes) throw invalid(field, `may have ${maxBytes} bytes of UTF-8 and has ${bytes}`)
  if (CONTROL.test(value)) throw invalid(field, 'must be one line without control characters')
  if (LONE_SURROGATE.test(value)) {
    throw invalid(field, 'must be well-formed text, but has half of a surrogate pair')
  }
  return value
}

function invalid(field: string, problem: string): InvalidArgumentError {
  return new InvalidArgumentError({ field, problem })
}

/** Names the kind of a value, never the value: it may be a secret. */
function describe(value: unknown): string {
  if (value === null) return 'null'
  return typeof value === 'object' ? 'an object' : `a ${typeof value}`
}

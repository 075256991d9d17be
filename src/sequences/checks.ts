import { checkKey, checkName } from '../base/check.ts'
import { InvalidArgumentError } from '../base/errors.ts'

/**
 * The name of a sequence, without outer blanks.
 *
 * @throws {InvalidArgumentError} No text, blank, longer than 1,024 bytes, or of several lines.
 */
export function checkSequenceName(value: unknown): string {
  // Null, which means no key elsewhere, is no name.
  const name = checkKey('name', value ?? '')
  return (name as string).trim()
}

/** `''`, nobody's, if it is left out. */
export function checkSequenceTenant(value: unknown): string {
  return value === undefined ? '' : checkName('tenant', value)
}

/** The key without outer blanks; null if there is none. */
export function checkIdempotencyKey(value: unknown): string | null {
  const trimmed = typeof value === 'string' ? value.trim() : value
  return trimmed === '' ? null : (checkKey('idempotencyKey', trimmed) ?? null)
}

/** What names are to begin with; `''` for all. */
export function checkPrefix(value: unknown): string {
  return value === undefined || value === '' ? '' : (checkKey('prefix', value) ?? '')
}

/** A cursor for what comes after `name`. */
export function cursorAfter(name: string): string {
  return Buffer.from(name).toString('base64url')
}

/** The name that a page ended with; `''` before the first. */
export function checkListCursor(after: unknown): string {
  if (after === undefined) return ''
  const name = typeof after === 'string' ? Buffer.from(after, 'base64url').toString() : ''
  if (name === '' || cursorAfter(name) !== after || name.includes('\0'))
    throw new InvalidArgumentError({ field: 'after', problem: 'must be the cursor that a page before gave' })
  return name
}

import { checkKey } from '../base/check.ts'
import { InvalidArgumentError } from '../base/errors.ts'

/**
 * Checks a reason that a person gives: one line of at most 1,024 bytes.
 *
 * @throws {InvalidArgumentError} It is blank, too long, or has control characters. Nothing was sent.
 */
export function checkReason(reason: string | undefined): string | undefined {
  return checkKey('reason', reason)
}

/**
 * {@link checkReason} where a reason has to be given.
 *
 * @throws {InvalidArgumentError} It is missing, or cannot be right. Nothing was sent.
 */
export function requireReason(reason: string | undefined): string {
  const checked = checkReason(reason)
  if (checked === undefined)
    throw new InvalidArgumentError({
      field: 'reason',
      problem: 'is missing; say why, for those who look later',
    })
  return checked
}

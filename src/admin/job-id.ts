import { InvalidArgumentError } from '../base/errors.ts'

const LARGEST_ID = 2n ** 63n - 1n

/**
 * Checks the id of a job as people type it.
 *
 * @throws {InvalidArgumentError} Not a whole number that an id can be. Nothing was sent.
 */
export function checkJobId(text: string): string {
  if (!/^[1-9]\d{0,18}$/.test(text) || BigInt(text) > LARGEST_ID)
    throw new InvalidArgumentError({
      field: 'id',
      problem: `must be the id of a job, such as 42, not "${text}"`,
    })
  return text
}

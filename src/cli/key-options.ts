import { InvalidArgumentError } from '../base/errors.ts'
import type { KeyOptions } from '../keys/key-options.ts'

/** Options of every command on keys. */
export const keyArgs = {
  tenant: { type: 'string', description: 'Tenant of the key. Default: none' },
  ephemeral: { type: 'boolean', description: 'An ephemeral key' },
} as const

export function spaceOf(args: {
  readonly tenant?: string | undefined
  readonly ephemeral?: boolean | undefined
}): Pick<KeyOptions, 'tenant' | 'durability'> {
  const { tenant } = args
  return {
    ...(tenant === undefined ? {} : { tenant }),
    durability: args.ephemeral === true ? 'ephemeral' : 'persistent',
  }
}

/** @throws {InvalidArgumentError} It is no whole number. */
export function bigintOption(field: string, text: string | undefined): bigint | undefined {
  if (text === undefined) return undefined
  if (!/^-?\d{1,19}$/.test(text)) throw new InvalidArgumentError({ field, problem: 'must be a whole number' })
  return BigInt(text)
}

/** @throws {InvalidArgumentError} It is no instant. */
export function instantOption(field: string, text: string | undefined): Date | undefined {
  if (text === undefined) return undefined
  const instant = new Date(text)
  if (Number.isNaN(instant.getTime()))
    throw new InvalidArgumentError({ field, problem: 'must be an instant, such as 2026-01-31T09:00:00Z' })
  return instant
}

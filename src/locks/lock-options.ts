import { randomUUID } from 'node:crypto'
import { checkKey, checkName, checkNumber, checkOneOf } from '../base/check.ts'
import type { Durability } from '../base/durability.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import { limits } from '../base/limits.ts'

/** What names a lock. */
export interface LockId {
  readonly resource: string
  /** Empty where there are no tenants. */
  readonly tenant: string
  readonly durability: Durability
}

/** A lock that somebody holds. */
export interface LockInfo extends LockId {
  readonly owner: string
  readonly fencingToken: bigint
  /** When it was granted, by PostgreSQL's clock. */
  readonly acquiredAt: Date
  /** When it frees itself, by PostgreSQL's clock. */
  readonly expiresAt: Date
}

/** Which lock is meant. */
export interface LockPlaceOptions {
  /** Whose lock it is: 1 to 255 bytes. Locks of two tenants have nothing to do with each other. Default: nobody's in particular. */
  readonly tenant?: string | undefined
  /** Default: `persistent`. */
  readonly durability?: Durability | undefined
  /** Your open transaction, as for `app.enqueue`. Default: a transaction of its own. */
  readonly tx?: unknown
}

/** Options of `app.locks.acquire`. */
export interface AcquireOptions extends LockPlaceOptions {
  /** How long the lock is held without extension, by PostgreSQL's clock, in milliseconds: 100 to a day. Default: 30,000. */
  readonly leaseMs?: number | undefined
  /** How long to wait while another holds it, in milliseconds: 0 (one try) to a day. Default: 0. */
  readonly waitMs?: number | undefined
  /**
   * How long to wait between two tries, in milliseconds: 10 to an hour. A release wakes whoever waits at once, so this is only
   * the delay where that notice is lost. Default: 200.
   */
  readonly retryMs?: number | undefined
  /**
   * True to extend the lease by itself, each time a third of it has passed, until it is released. Not together with `tx`.
   * Default: false.
   */
  readonly renew?: boolean | undefined
  /**
   * Who wants it: 1 to 1,024 bytes. An owner that has the lock gets it again, with the same token and without a longer lease;
   * whichever of its handles releases it, it is free. Default: a new one for each call, so that no two calls share it.
   */
  readonly owner?: string | undefined
  /** Ends the wait: the answer is then a lock that is not held. Default: none. */
  readonly signal?: AbortSignal | undefined
}

export interface CheckedAcquire {
  readonly lock: LockId
  readonly leaseMs: number
  readonly waitMs: number
  readonly retryMs: number
  readonly renew: boolean
  readonly owner: string
  /** False if the owner is of this call alone. */
  readonly isShared: boolean
  readonly signal: AbortSignal | undefined
}

/** @throws {InvalidArgumentError} Something cannot be right; names the field. */
export function checkAcquire(resource: unknown, options: AcquireOptions): CheckedAcquire {
  const { renew = false, signal, tx } = options
  if (typeof renew !== 'boolean')
    throw new InvalidArgumentError({ field: 'renew', problem: 'must be true or false' })
  if (renew && tx !== undefined) {
    const problem = 'cannot be given together with tx: nobody can extend a lock that is not committed'
    throw new InvalidArgumentError({ field: 'renew', problem })
  }
  if (signal !== undefined && !(signal instanceof AbortSignal))
    throw new InvalidArgumentError({ field: 'signal', problem: 'must be an AbortSignal' })
  const owner = checkKey('owner', options.owner)
  return {
    lock: checkLock(resource, options),
    leaseMs: checkNumber('leaseMs', options.leaseMs, limits.lockLeaseMs),
    waitMs: checkNumber('waitMs', options.waitMs, limits.waitMs),
    retryMs: checkNumber('retryMs', options.retryMs, limits.retryMs),
    renew,
    owner: owner ?? randomUUID(),
    isShared: owner !== undefined,
    signal,
  }
}

/** @throws {InvalidArgumentError} Something cannot be right; names the field. */
export function checkLock(
  resource: unknown,
  options: { readonly tenant?: string | undefined; readonly durability?: Durability | undefined },
): LockId {
  const { tenant, durability } = options
  const name = checkKey('resource', resource)
  if (name === undefined) throw new InvalidArgumentError({ field: 'resource', problem: 'must be given' })
  return {
    resource: name,
    tenant: tenant === undefined || tenant === '' ? '' : checkName('tenant', tenant),
    durability:
      durability === undefined
        ? 'persistent'
        : checkOneOf('durability', durability, ['persistent', 'ephemeral']),
  }
}

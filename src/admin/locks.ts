import { checkKey, checkName, checkNumber } from '../base/check.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import { limits } from '../base/limits.ts'
import { type Database, run } from '../driver/operation.ts'
import { checkLock, type Durability, type LockId, type LockInfo } from '../locks/lock-options.ts'
import * as store from '../locks/lock-store.ts'
import { requireReason } from './reason.ts'
import { type AuditRow, listAudit } from './sql/list-audit.ts'

/** A lock as people name it. */
export interface NamedLock {
  readonly resource: string
  readonly tenant?: string | undefined
  readonly durability?: Durability | undefined
}

export interface LockDetails {
  readonly lock: LockId
  /** Who holds it; null: nobody. */
  readonly holder: LockInfo | null
  /** Who took it from a holder, and why, oldest first. */
  readonly audit: readonly AuditRow[]
}

/**
 * All there is to know of one lock.
 *
 * @throws {InvalidArgumentError} It cannot be the name of one. Nothing was sent.
 */
export async function showLock(database: Database, given: NamedLock): Promise<LockDetails> {
  const lock = checkLock(given.resource, given)
  const holder = (await store.find(database, lock)) ?? null
  const subject = store.subjectOf(lock)
  return { lock, holder, audit: await run(database, listAudit, { subject, limit: limits.pageRows.max }) }
}

/**
 * Takes a lock from its holder, for a person who knows that it is gone; kept in the audit.
 *
 * @returns Whose it was; `undefined`: nobody held it.
 * @throws {InvalidArgumentError} Something cannot be right, or the reason is missing. Nothing was sent.
 */
export async function takeLock(
  database: Database,
  given: NamedLock,
  by: { readonly actor: string; readonly reason: string | undefined },
): Promise<{ readonly owner: string; readonly fencingToken: bigint } | undefined> {
  const lock = checkLock(given.resource, given)
  const who = { actor: checkName('by', by.actor), reason: requireReason(by.reason) }
  return await store.forceRelease(database, lock, who)
}

/** A lock as a person acts on it who knows the owner: whichever token that has. */
export interface OwnedLock extends NamedLock {
  readonly owner: string
}

/**
 * Tries once for a lock in the name of an owner, who then has it without a process that holds it.
 *
 * @throws {InvalidArgumentError} Something is out of range. Nothing was sent.
 */
export async function acquireAs(
  database: Database,
  given: OwnedLock & { readonly leaseMs?: number | undefined },
): Promise<store.TryAnswer> {
  const { lock, owner } = checkOwned(given)
  const leaseMs = checkNumber('leaseMs', given.leaseMs, limits.lockLeaseMs)
  return await store.tryLock(database, lock, { owner, leaseMs, waitMs: null })
}

/**
 * Lets the lease of an owner's lock end so long from now. False: it is not that owner's, or its lease is over.
 *
 * @throws {InvalidArgumentError} Something is out of range. Nothing was sent.
 */
export async function extendAs(
  database: Database,
  given: OwnedLock & { readonly leaseMs?: number | undefined },
): Promise<boolean> {
  const { lock, owner } = checkOwned(given)
  const leaseMs = checkNumber('leaseMs', given.leaseMs, limits.lockLeaseMs)
  return (await store.extend(database, lock, { owner, token: null, leaseMs })) !== undefined
}

/**
 * Frees an owner's lock. False: it is not that owner's.
 *
 * @throws {InvalidArgumentError} Something is out of range. Nothing was sent.
 */
export async function releaseAs(database: Database, given: OwnedLock): Promise<boolean> {
  const { lock, owner } = checkOwned(given)
  return (await store.release(database, lock, { owner, token: null })) === 'released'
}

function checkOwned(given: OwnedLock): { readonly lock: LockId; readonly owner: string } {
  const owner = checkKey('owner', given.owner)
  if (owner === undefined) throw new InvalidArgumentError({ field: 'owner', problem: 'must be given' })
  return { lock: checkLock(given.resource, given), owner }
}

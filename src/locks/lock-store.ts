import type { Durability } from '../base/durability.ts'
import { type Database, run, runOne } from '../driver/operation.ts'
import type { LockId, LockInfo } from './lock-options.ts'
import {
  acquireEphemeralLock,
  acquireEphemeralLockInside,
  acquireLock,
  acquireLockInside,
} from './sql/acquire-lock.ts'
import { extendEphemeralLock, extendLock } from './sql/extend-lock.ts'
import { findEphemeralLock, findLock } from './sql/find-lock.ts'
import { forceReleaseEphemeralLock, forceReleaseLock } from './sql/force-release-lock.ts'
import { releaseEphemeralLock, releaseLock } from './sql/release-lock.ts'

const operations = {
  persistent: {
    acquire: acquireLock,
    acquireInside: acquireLockInside,
    extend: extendLock,
    release: releaseLock,
    find: findLock,
    forceRelease: forceReleaseLock,
  },
  ephemeral: {
    acquire: acquireEphemeralLock,
    acquireInside: acquireEphemeralLockInside,
    extend: extendEphemeralLock,
    release: releaseEphemeralLock,
    find: findEphemeralLock,
    forceRelease: forceReleaseEphemeralLock,
  },
} as const satisfies Record<Durability, object>

/** What came of one try. */
export interface TryAnswer {
  readonly held: boolean
  /** The owner had it before this try. */
  readonly again: boolean
  readonly fencingToken: bigint | null
  readonly endsAt: Date | null
  /** How long the lease of whoever holds it still is; null: not known, an open transaction has it. */
  readonly leftMs: number | null
}

/** Who holds a lock: an owner and, unless any will do, the token it was granted with. */
export interface Holder {
  readonly owner: string
  readonly token: bigint | null
}

/** Tries once, on connections of our own. `waitMs` is how long the caller will go on trying; null: not at all. */
export async function tryLock(
  database: Database,
  lock: LockId,
  request: { readonly owner: string; readonly leaseMs: number; readonly waitMs: number | null },
): Promise<TryAnswer> {
  const { tenant, resource, durability } = lock
  return await runOne(database, operations[durability].acquire, { tenant, resource, ...request })
}

/** {@link tryLock} in a transaction of the caller's. */
export async function tryLockInside(
  database: Database,
  lock: LockId,
  request: { readonly owner: string; readonly leaseMs: number },
): Promise<TryAnswer> {
  const { tenant, resource, durability } = lock
  const { acquireInside } = operations[durability]
  return await runOne(database, acquireInside, { tenant, resource, ...request, waitMs: null })
}

/** How long the lease is from now; `undefined` if the lock is not that holder's, or its lease is over. */
export async function extend(
  database: Database,
  lock: LockId,
  holder: Holder & { readonly leaseMs: number },
): Promise<{ readonly endsAt: Date; readonly leftMs: number } | undefined> {
  const { tenant, resource, durability } = lock
  const { endsAt, leftMs } = await runOne(database, operations[durability].extend, {
    tenant,
    resource,
    ...holder,
  })
  return endsAt === null || leftMs === null ? undefined : { endsAt, leftMs }
}

/** `before`: it had been released with that token. `lost`: it was not that holder's. */
export async function release(
  database: Database,
  lock: LockId,
  holder: Holder,
): Promise<'released' | 'before' | 'lost'> {
  const { tenant, resource, durability } = lock
  const { answer } = await runOne(database, operations[durability].release, { tenant, resource, ...holder })
  return answer as 'released' | 'before' | 'lost'
}

/** Who holds the lock now. */
export async function find(database: Database, lock: LockId): Promise<LockInfo | undefined> {
  const { tenant, resource, durability } = lock
  const [found] = await run(database, operations[durability].find, { tenant, resource })
  return found && { ...lock, ...found }
}

/** Whose it was; `undefined`: nobody's. */
export async function forceRelease(
  database: Database,
  lock: LockId,
  by: { readonly actor: string; readonly reason: string },
): Promise<{ readonly owner: string; readonly fencingToken: bigint } | undefined> {
  const { tenant, resource, durability } = lock
  const { owner, fencingToken } = await runOne(database, operations[durability].forceRelease, {
    tenant,
    resource,
    subject: subjectOf(lock),
    ...by,
  })
  return owner === null || fencingToken === null ? undefined : { owner, fencingToken }
}

/** What the audit calls a lock. */
export function subjectOf({ tenant, resource, durability }: LockId): string {
  return `lock ${JSON.stringify([tenant, resource, durability])}`
}

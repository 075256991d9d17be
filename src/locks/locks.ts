import { AsyncResource } from 'node:async_hooks'
import { checkKey, checkName } from '../base/check.ts'
import { InvalidArgumentError, LockLostError } from '../base/errors.ts'
import type { Hints } from '../driver/hints.ts'
import { runOne } from '../driver/operation.ts'
import type { Reach } from '../driver/reach.ts'
import { Acquirer } from './acquirer.ts'
import { type ListLocksOptions, type LockPage, listLocks } from './list-locks.ts'
import { type Grant, type Lock, LockHandle } from './lock.ts'
import {
  type AcquireOptions,
  type CheckedAcquire,
  checkAcquire,
  checkLock,
  type LockInfo,
  type LockPlaceOptions,
} from './lock-options.ts'
import { find, forceRelease } from './lock-store.ts'
import type { Renewal } from './renewal.ts'
import { assertLock } from './sql/assert-lock.ts'

/** Options of `app.locks.forceRelease`. */
export interface ForceReleaseOptions extends LockPlaceOptions {
  /** Who takes it: 1 to 255 bytes. Kept in the audit. */
  readonly actor: string
  /** Why: one line of 1 to 1,024 bytes. Kept in the audit. */
  readonly reason: string
}

/** Whose lock was taken. */
export interface ForceReleased {
  readonly owner: string
  readonly fencingToken: bigint
}

/**
 * Locks that are leases: each frees itself when its time has passed, so that a holder that died keeps nobody waiting, and each
 * grant has a fencing token that is larger than any before it.
 *
 * A holder that was paused may go on after its lease, beside the next one. What the lock is to protect has to look at the
 * token: in this database `assert` does, in the transaction of the write.
 */
export class Locks {
  readonly #reach: Reach
  readonly #acquirer: Acquirer
  readonly #renewals = new Set<Renewal>()
  /** What goes on after a call must not count as inside its caller's transaction. */
  readonly #outside = new AsyncResource('holdfast.locks')

  /** @internal Use `app.locks`. */
  constructor(parts: { readonly reach: Reach; readonly hints: Pick<Hints, 'on'> }) {
    this.#reach = parts.reach
    this.#acquirer = new Acquirer({
      own: parts.reach.database,
      hints: parts.hints,
      outside: (fn) => this.#outside.runInAsyncScope(fn),
    })
  }

  /**
   * Acquires the lock on `resource`, waiting up to `waitMs` while another holds it. When it resolves with a held lock, the grant
   * is committed to disk whatever `synchronous_commit` says; with `tx` it is part of your transaction: nobody else gets the lock
   * from then on, and it is held once you have committed. Do not use the token before.
   *
   * Safe to repeat with an `owner`: an owner that has the lock gets it again.
   *
   * @param resource What to lock: 1 to 1,024 bytes of UTF-8 on one line, compared byte by byte.
   * @returns The lock, in every case: look at `held`. False: another has it, the signal aborted, or the application closes; it
   *   is not granted later. In a transaction at REPEATABLE READ also if it changed hands since the transaction began.
   * @throws {InvalidArgumentError} An argument is out of range; names the field. Nothing was sent, as with the next two.
   * @throws {OutsideTransactionError} Called without `tx` inside `app.transaction`.
   * @throws {TransactionRequiredError} `tx` is not an open transaction of a known driver.
   * @throws {OutcomeUnknownError} The answer was lost, and asking again failed too. What was granted to a call without `owner` is
   *   released as soon as possible, and is free after its lease at the latest.
   * @throws {UnavailableError} The database cannot be reached, for as long as was waited.
   *
   * @example
   * await using lock = await app.locks.acquire(`invoices/${id}`, { leaseMs: 30_000, waitMs: 5_000 })
   * if (!lock.held) return
   * await charge(id, lock.fencingToken, lock.signal)
   */
  async acquire(resource: string, options: AcquireOptions = {}): Promise<Lock> {
    const request = checkAcquire(resource, options)
    const { tx } = options
    const database = this.#reach.at(tx)
    const grant =
      tx === undefined
        ? await this.#acquirer.acquire(request)
        : await this.#acquirer.acquireInside(database, request)
    return this.#handle(request, grant, tx)
  }

  /**
   * Who holds the lock now; `undefined` if nobody does. Do not build on it: it may change at once.
   *
   * @throws {InvalidArgumentError} An argument is out of range. Nothing was sent.
   */
  async info(resource: string, options: LockPlaceOptions = {}): Promise<LockInfo | undefined> {
    const lock = checkLock(resource, options)
    return await find(this.#reach.at(options.tx), lock)
  }

  /**
   * A page of the locks of one tenant and durability that are held now, by resource in the order of its bytes.
   *
   * @throws {InvalidArgumentError} An option is out of range. Nothing was sent.
   */
  async list(options: ListLocksOptions & { readonly tx?: unknown } = {}): Promise<LockPage> {
    const { tx, ...others } = options
    return await listLocks(() => this.#reach.at(tx), { ...others, tenant: others.tenant ?? '' })
  }

  /**
   * Takes the lock from whoever holds it, for a person who knows that its holder is gone. The holder's token is refused from
   * then on, by `assert` and by whoever has seen a larger one; its signal aborts when it extends next, or when its lease
   * ends. Kept in the audit. Do not repeat it blindly: it would take the lock from the next holder.
   *
   * @returns Whose it was; `undefined` if nobody held it, and nothing was changed.
   * @throws {InvalidArgumentError} An argument is missing or out of range. Nothing was sent.
   * @throws {OutcomeUnknownError} The answer was lost: look by `info` before you repeat it.
   */
  async forceRelease(resource: string, options: ForceReleaseOptions): Promise<ForceReleased | undefined> {
    const lock = checkLock(resource, options ?? {})
    const actor = checkName('actor', options?.actor)
    const reason = checkKey('reason', options?.reason)
    if (reason === undefined)
      throw new InvalidArgumentError({
        field: 'reason',
        problem: 'is missing; say why, for those who look later',
      })
    const released = await forceRelease(this.#reach.at(options.tx), lock, { actor, reason })
    if (released !== undefined) this.#acquirer.wake(lock)
    return released
  }

  /**
   * Makes your transaction fail unless the lock is held with `token`. Call it in the transaction of a guarded write: until that
   * has ended nobody else is granted the lock, also if its lease passes, so that a holder that is late writes nothing.
   *
   * Waits for a grant to somebody else that is not committed. In a transaction at REPEATABLE READ make it the first statement.
   *
   * @throws {LockLostError} It is not: somebody else has it or had it, it was released, or its lease is over. The transaction is
   *   aborted: let it end.
   * @throws {InvalidArgumentError} An argument is out of range. Nothing was sent.
   * @throws {TransactionRequiredError} `tx` is not an open transaction of a known driver.
   *
   * @example
   * await app.transaction(async (tx) => {
   *   await app.locks.assert(tx, `invoices/${id}`, lock.fencingToken)
   *   await tx.query('update invoice set paid = true where id = $1', [id])
   * })
   */
  async assert(
    tx: unknown,
    resource: string,
    token: bigint,
    options: Pick<LockPlaceOptions, 'tenant' | 'durability'> = {},
  ): Promise<void> {
    const { durability, tenant, resource: name } = checkLock(resource, options)
    if (typeof token !== 'bigint' || token < 1n || token > MAX_TOKEN)
      throw new InvalidArgumentError({
        field: 'token',
        problem: 'must be the bigint that a lock was granted with',
      })
    // Null, so that leaving it out is refused as what it is.
    const database = this.#reach.at(tx ?? null)
    try {
      await runOne(database, assertLock, { resource: name, token, tenant, durability })
    } catch (error) {
      if (!(error instanceof LockLostError)) throw error
      // Not every ORM says more than that it was refused.
      throw new LockLostError({ resource: name, fencingToken: token, why: 'gone' }, { cause: error.cause })
    }
  }

  /** @internal Ends waits and renewals; locks that are held stay so until their leases are over. */
  async close(): Promise<void> {
    for (const renewal of this.#renewals) renewal.stop()
    await this.#acquirer.close()
  }

  #handle(request: CheckedAcquire, grant: Grant | undefined, tx: unknown): Lock {
    const { lock, owner, leaseMs, renew } = request
    const handle = new LockHandle({
      lock,
      owner,
      grant,
      tx,
      at: (inside) => this.#reach.at(inside),
      own: this.#reach.database,
      outside: (fn) => this.#outside.runInAsyncScope(fn),
      renewals: this.#renewals,
      onReleased: () => this.#acquirer.wake(lock),
    })
    if (renew && grant !== undefined) handle.startRenewal(leaseMs)
    return handle as Lock
  }
}

const MAX_TOKEN = 2n ** 63n - 1n

import { checkNumber } from '../base/check.ts'
import { monotonicMs } from '../base/clock.ts'
import {
  ClosedError,
  OutcomeUnknownError,
  TransactionRequiredError,
  UnavailableError,
} from '../base/errors.ts'
import { limits } from '../base/limits.ts'
import type { Database } from '../driver/operation.ts'
import { Lease } from './lease.ts'
import type { LockId, LockInfo } from './lock-options.ts'
import { extend, find, release } from './lock-store.ts'
import { Renewal } from './renewal.ts'

/** Options of a lock's `extend` and `release`. */
export interface LockCallOptions {
  /**
   * Your open transaction, as for `app.enqueue`: the call commits and rolls back with it. Default: the transaction that the
   * lock was acquired in, while it is open; else a transaction of its own. An extension in a transaction does not lengthen what
   * this process counts on.
   */
  readonly tx?: unknown
}

/** What every lock has, held or not. */
export interface LockMembers {
  readonly resource: string
  readonly tenant: string
  /** Who holds it, or wanted to. */
  readonly owner: string
  /** When its lease is over by PostgreSQL's clock, as far as this process was told; `undefined` if it was not acquired. */
  readonly expiresAt: Date | undefined
  /**
   * Aborts with a `LockLostError` when the lease is lost, or may be: in time, before anybody else can have the lock. Counted
   * from before PostgreSQL was asked, by a clock that nobody can set. Aborted from the beginning if the lock was not acquired.
   * A release does not abort it.
   */
  readonly signal: AbortSignal
  /**
   * Lets the lease end `ms` milliseconds from now (100 to a day), sooner than before too. Safe to repeat.
   *
   * @returns False: the lock is lost, and cannot be had back by this handle.
   * @throws {InvalidArgumentError} `ms` is out of range. Nothing was sent.
   * @throws {UnavailableError} The database cannot be reached; the lease is as it was, or as asked for.
   */
  extend(ms: number, options?: LockCallOptions): Promise<boolean>
  /**
   * Frees the lock, and wakes who waits for it. Safe to repeat. Stops the renewal.
   *
   * @returns True if it was this holder's until now, although its lease may have been over; false if it was released before,
   *   or is somebody else's, whose lock is left alone.
   * @throws {UnavailableError} The database cannot be reached: repeat it, or let the lease pass.
   */
  release(options?: LockCallOptions): Promise<boolean>
  /** Who holds it now, this lock or another's; `undefined` if nobody does. */
  info(): Promise<LockInfo | undefined>
  /** Releases it. If the database cannot be reached it leaves that to the end of the lease, and does not throw. */
  [Symbol.asyncDispose](): Promise<void>
}

/**
 * What `app.locks.acquire` gives, whether the lock was had or not: look at `held` first. `held` says whether this process may
 * still count on it; `fencingToken` goes with every guarded write, and is checked there: a lock alone protects nothing that
 * does not look at the token.
 */
export type Lock = LockMembers &
  (
    | { readonly held: true; readonly fencingToken: bigint }
    | { readonly held: false; readonly fencingToken: bigint | undefined }
  )

/** What was granted. */
export interface Grant {
  readonly fencingToken: bigint
  readonly endsAt: Date
  readonly leftMs: number
  /** Of the monotonic clock, before PostgreSQL was asked. */
  readonly sentMs: number
}

/** What a lock works through. */
export interface LockParts {
  readonly lock: LockId
  readonly owner: string
  readonly grant: Grant | undefined
  /** The transaction it was acquired in. */
  readonly tx: unknown
  /** Where a call goes: a transaction, or connections of our own, also from inside a transaction of somebody's. */
  readonly at: (tx: unknown) => Database
  readonly own: Database
  /** Runs what goes on after the call as outside of any transaction. */
  readonly outside: <T>(fn: () => T) => T
  /** The lock may be free: whoever waits in this process should look. */
  readonly onReleased: () => void
  /** Of all locks of the application. */
  readonly renewals: Set<Renewal>
}

/** A lock that was asked for. See {@link Lock}. */
export class LockHandle implements LockMembers {
  readonly resource: string
  readonly tenant: string
  readonly owner: string
  readonly fencingToken: bigint | undefined
  readonly #parts: LockParts
  readonly #lease: Lease
  #expiresAt: Date | undefined
  #renewal: Renewal | undefined
  /**
   * Calls on our own connections go one after the other: the answer that came last is the newest. One in a transaction must
   * not wait for them, since they may wait for that transaction.
   */
  #idle: Promise<unknown> = Promise.resolve()
  /** A release failed without an answer: if the lock turns out to be released, it was by that one. */
  #releaseIsUnknown = false

  constructor(parts: LockParts) {
    this.#parts = parts
    this.resource = parts.lock.resource
    this.tenant = parts.lock.tenant
    this.owner = parts.owner
    this.fencingToken = parts.grant?.fencingToken
    this.#lease = new Lease({ resource: this.resource, fencingToken: this.fencingToken })
    if (parts.grant === undefined) this.#lease.lose('not-acquired')
    else {
      this.#expiresAt = parts.grant.endsAt
      this.#lease.count(parts.grant.sentMs + parts.grant.leftMs)
    }
  }

  get held(): boolean {
    return this.#lease.counts
  }

  get expiresAt(): Date | undefined {
    return this.#expiresAt
  }

  get signal(): AbortSignal {
    return this.#lease.signal
  }

  async extend(ms: number, options: LockCallOptions = {}): Promise<boolean> {
    const leaseMs = checkNumber('ms', ms ?? Number.NaN, limits.lockLeaseMs)
    return await this.#at(options.tx, async (database) => await this.#extend(database, leaseMs))
  }

  async release(options: LockCallOptions = {}): Promise<boolean> {
    if (this.fencingToken === undefined) return false
    this.#renewal?.stop()
    this.#lease.end()
    return await this.#at(options.tx, async (database) => await this.#release(database))
  }

  async info(): Promise<LockInfo | undefined> {
    const { lock } = this.#parts
    return await this.#at(undefined, async (database) => await find(database, lock))
  }

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await this.release()
    } catch (error) {
      if (!LEFT_TO_LEASE.some((kind) => error instanceof kind)) throw error
    }
  }

  /** Extends the lease by itself from now on. */
  startRenewal(leaseMs: number): void {
    const { own, outside, renewals } = this.#parts
    const renewal: Renewal = outside(
      () =>
        new Renewal({
          leaseMs,
          extend: async () => await this.#inTurn(async () => await this.#extend(own, leaseMs)),
          onEnd: () => renewals.delete(renewal),
        }),
    )
    renewals.add(renewal)
    this.#renewal = renewal
  }

  async #extend(database: Database, leaseMs: number): Promise<boolean> {
    // Who has been told that the lock is lost is not to have it again.
    if (!this.#lease.counts) return false
    const { lock } = this.#parts
    const sentMs = monotonicMs()
    // From now on the lease may be shorter, also if the answer is late or lost.
    this.#lease.count(Math.min(this.#lease.untilMs, sentMs + leaseMs))
    const extended = await extend(database, lock, { ...this.#holder(), leaseMs })
    if (extended === undefined) {
      this.#renewal?.stop()
      this.#lease.lose('gone')
      return false
    }
    if (!this.#lease.counts) return false
    const untilMs = sentMs + extended.leftMs
    // What is not committed may shorten what this process counts on, and never lengthen it.
    if (database === this.#parts.own || untilMs < this.#lease.untilMs) {
      this.#expiresAt = extended.endsAt
      this.#lease.count(untilMs)
    }
    return this.#lease.counts
  }

  async #release(database: Database): Promise<boolean> {
    const { lock, onReleased } = this.#parts
    try {
      const answer = await release(database, lock, this.#holder())
      if (answer !== 'lost') onReleased()
      return answer === 'released' || (answer === 'before' && this.#releaseIsUnknown)
    } catch (error) {
      this.#releaseIsUnknown ||= error instanceof UnavailableError
      throw error
    }
  }

  #holder() {
    return { owner: this.owner, token: this.fencingToken ?? null }
  }

  /** In the transaction that is given; else in the one it was acquired in, unless that has ended. */
  async #at<T>(tx: unknown, fn: (database: Database) => Promise<T>): Promise<T> {
    const { at, tx: acquiredIn } = this.#parts
    if (tx !== undefined) return await fn(at(tx))
    const own = async () => {
      const database = at(undefined)
      return await this.#inTurn(async () => await fn(database))
    }
    if (acquiredIn === undefined) return await own()
    try {
      return await fn(at(acquiredIn))
    } catch (error) {
      if (!(error instanceof TransactionRequiredError)) throw error
      return await own()
    }
  }

  async #inTurn<T>(fn: () => Promise<T>): Promise<T> {
    const turn = this.#idle.then(fn)
    this.#idle = turn.catch(() => {})
    return await turn
  }
}

const LEFT_TO_LEASE = [UnavailableError, OutcomeUnknownError, ClosedError] as const

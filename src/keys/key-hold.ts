import { checkNumber } from '../base/check.ts'
import { monotonicMs } from '../base/clock.ts'
import { limits } from '../base/limits.ts'
import { type Database, run, runOne } from '../driver/operation.ts'
import { KeyHoldExpiredError } from './errors.ts'
import { releaseHold, renewHold } from './sql/keep-hold.ts'

export interface HoldFacts {
  readonly id: bigint
  readonly holder: string
  readonly heldAt: Date
  readonly isExact: boolean
  readonly seen: string
}

/**
 * A moment of the keys that can be read again and again: what such reads need of the history is not trimmed while the hold
 * lives. Give it as `asOf`.
 */
export class KeyHold {
  readonly holder: string
  /** The moment, by the database's clock. */
  readonly heldAt: Date
  /** True for the moment at which it was taken, which is exact over all keys; false for one of the past. */
  readonly isExact: boolean
  readonly #facts: HoldFacts
  readonly #database: Database
  #endsMs: number

  /** @internal Use `app.keys.hold`. */
  constructor(database: Database, facts: HoldFacts, endsMs: number) {
    this.#database = database
    this.#facts = facts
    this.#endsMs = endsMs
    this.holder = facts.holder
    this.heldAt = facts.heldAt
    this.isExact = facts.isExact
  }

  /** How many milliseconds it lives on for certain, by this process's monotonic clock; 0: it has run out. */
  get remainingMs(): number {
    return Math.max(0, this.#endsMs - monotonicMs())
  }

  /**
   * Has it live `leaseMs` from now, 1 ms to 24 days. Safe to repeat.
   *
   * @returns False if it had run out or was released: take a new one.
   */
  async renew(leaseMs?: number): Promise<boolean> {
    const ms = checkNumber('leaseMs', leaseMs, limits.keyHoldMs)
    const askedMs = monotonicMs()
    const renewed = await run(this.#database, renewHold, { id: this.#facts.id, leaseMs: ms })
    this.#endsMs = renewed.length === 0 ? 0 : askedMs + ms
    return renewed.length > 0
  }

  /** Ends it. Safe to repeat. */
  async release(): Promise<void> {
    this.#endsMs = 0
    await runOne(this.#database, releaseHold, { id: this.#facts.id })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.release()
  }

  /** @internal */
  moment(): { readonly seen: string | null; readonly atMs: bigint } {
    if (this.remainingMs === 0) throw new KeyHoldExpiredError({ holder: this.holder })
    return { seen: this.isExact ? this.#facts.seen : null, atMs: BigInt(this.heldAt.getTime()) }
  }
}

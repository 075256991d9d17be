import { DatabaseError } from '../base/errors.ts'
import type { Wakeup } from '../base/wakeup.ts'
import type { Outbox, SettlementBatch } from './outbox.ts'

/** Most jobs settled, and most claimed, in one statement: a lease of so many fits a page of PostgreSQL's. */
export const MAX_BATCH = 400
/** From so many completions of whole leases on, they are recorded beside the claims. */
const BULK = 200
/** With so many outcomes waiting, the one traffic takes some along: it claims no faster than both record. */
const BACKLOG = 4 * MAX_BATCH

export interface BulkSettlerOptions {
  readonly outbox: Outbox
  /** Woken when it has nothing to do any more. */
  readonly wakeup: Wakeup
  /** Records completions on a second connection; undefined where there is none. */
  readonly settleBeside: ((batch: SettlementBatch) => Promise<void>) | undefined
  readonly onError: (error: unknown, retryInMs: number) => void
}

/**
 * In bulk, records completions by a connection of its own, a batch at a time, so that PostgreSQL claims and records at
 * once. A failure ends it: what it had goes back to the outbox, and from there by the one traffic.
 */
export class BulkSettler {
  readonly #options: BulkSettlerOptions
  #flight: Promise<void> | undefined

  constructor(options: BulkSettlerOptions) {
    this.#options = options
  }

  get isBusy(): boolean {
    return this.#flight !== undefined
  }

  /** True if the completions in the outbox are its business now. */
  takesOver(): boolean {
    const { outbox, settleBeside } = this.#options
    if (settleBeside === undefined) return false
    if (this.#flight !== undefined) return outbox.size < BACKLOG
    if (outbox.whole < BULK) return false
    this.#flight = this.#run(settleBeside)
    return true
  }

  /** Resolves when it is not busy. */
  async end(): Promise<void> {
    await this.#flight
  }

  async #run(settleBeside: (batch: SettlementBatch) => Promise<void>): Promise<void> {
    const { outbox, wakeup, onError } = this.#options
    while (outbox.whole >= BULK) {
      const batch = outbox.takeCompleted(MAX_BATCH)
      if (batch === undefined) break
      try {
        await settleBeside(batch)
      } catch (error) {
        outbox.putBack(batch, error instanceof DatabaseError)
        onError(error, 0)
        break
      }
    }
    this.#flight = undefined
    wakeup.wake()
  }
}

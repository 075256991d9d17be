import type { Driver } from './driver.ts'
import type { Database } from './operation.ts'

export interface ReachOptions {
  readonly driver: Driver
  /** The application's own connections. */
  readonly database: Database
  /** Turns what a caller passed as `tx` into something to run statements on. */
  readonly databaseOf: (tx: unknown) => Database
  /** Refuses a call without `tx` from inside a transaction of ours. */
  readonly requireOutside: () => void
}

/** How an area reaches the database: by the application's own connections, or in a transaction that a caller passed. */
export class Reach {
  readonly driver: Driver
  readonly database: Database
  readonly #options: ReachOptions

  constructor(options: ReachOptions) {
    this.#options = options
    this.driver = options.driver
    this.database = options.database
  }

  /**
   * Where the statements of a call go.
   *
   * @throws {OutsideTransactionError} `tx` is left out inside a transaction of ours: the call would not be part of it.
   * @throws {TransactionRequiredError} `tx` is not an open transaction of a known driver.
   */
  at(tx: unknown): Database {
    if (tx !== undefined) return this.#options.databaseOf(tx)
    this.#options.requireOutside()
    return this.database
  }
}

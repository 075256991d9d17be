import { AsyncLocalStorage } from 'node:async_hooks'
import type { IsDirect } from '../adapters/pg-transaction.ts'
import { recognise } from '../adapters/recognise.ts'
import { OutsideTransactionError } from '../base/errors.ts'
import type { Driver, OpenTransaction, Queryable } from '../driver/driver.ts'
import type { Database } from '../driver/operation.ts'
import type { Enqueuer } from '../jobs/enqueue.ts'
import { type EnqueueParts, Transaction } from '../jobs/transaction.ts'

/** A transaction of the application itself: nobody has declared what it does. */
export const ANYBODY: EnqueueParts = {
  tenant: '',
  requireDeclared: () => {},
  inherit: (options) => options,
}

/** What runs our statements in the transaction that a caller passed. */
export function queryableOf(tx: unknown, isDirect?: IsDirect): Queryable {
  return tx instanceof Transaction ? tx.queryable : recognise(tx, isDirect)
}

/** The application's transactions, and what is called inside of one. */
export class Transactions {
  readonly #driver: Driver
  readonly #schema: string
  readonly #inside = new AsyncLocalStorage<true>()

  constructor(driver: Driver, schema: string) {
    this.#driver = driver
    this.#schema = schema
  }

  /** Where our statements go in a transaction that a caller passed. */
  databaseOf(tx: unknown): Database {
    const isDirect = (client: object) => this.#driver.isDirect(client)
    return { queryable: queryableOf(tx, isDirect), schema: this.#schema, prepare: false }
  }

  /** @throws {OutsideTransactionError} The call comes from inside a transaction of ours, and does not use it. */
  requireOutside(): void {
    if (this.#inside.getStore()) throw new OutsideTransactionError()
    this.#driver.requireOutside()
  }

  /** Runs `fn` as inside a transaction: what it calls without that transaction is refused. */
  async within<T>(fn: () => Promise<T>): Promise<T> {
    return await this.#inside.run(true, fn)
  }

  /** Runs `fn` in a transaction of ours. `inside` is for our own statements in it. */
  async run<T>(
    fn: (tx: Transaction, inside: Database) => Promise<T>,
    parts: EnqueueParts & { readonly enqueuer: Enqueuer },
  ): Promise<T> {
    if (this.#inside.getStore()) throw new OutsideTransactionError()
    const schema = this.#schema
    return await this.#driver.transaction(async (queryable: OpenTransaction) => {
      const tx = new Transaction({ ...parts, schema, queryable })
      return await this.within(async () => await fn(tx, { queryable, schema, prepare: false }))
    })
  }
}

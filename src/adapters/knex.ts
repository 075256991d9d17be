import type { Queryable } from '../driver/driver.ts'
import { useLaterPgClient } from './pg-transaction.ts'
import { ENDED, hasMethods, isThing, refuse, type Thing } from './shape.ts'

/** The subset of a transaction of Knex that is used: what `knex.transaction` gives. */
export interface KnexTransaction {
  isCompleted(): boolean
  readonly client: { acquireConnection(): Promise<unknown> }
}

/**
 * A transaction of Knex. Its own client of pg is used: Knex takes every `?` for a placeholder, in names and comments
 * too, and rows would pass through the user's `postProcessResponse`.
 */
export function recogniseKnex(tx: unknown): Queryable | undefined {
  if (typeof tx !== 'function' || !isThing(tx) || !hasMethods(tx, ['raw', 'transaction', 'queryBuilder']))
    return undefined
  if (!isKnexTransaction(tx)) {
    throw refuse('it is a Knex instance: pass the "trx" that knex.transaction gives to its callback')
  }
  return useKnex(tx)
}

export function isKnexTransaction(value: unknown): value is KnexTransaction {
  if (!isThing(value) || !hasMethods(value, ['isCompleted'])) return false
  return isThing(value['client']) && hasMethods(value['client'] as Thing, ['acquireConnection'])
}

export function useKnex(trx: KnexTransaction): Queryable {
  // Inside a transaction this gives the transaction's connection, and takes none from the pool.
  return useLaterPgClient(
    async () => await trx.client.acquireConnection(),
    () => {
      if (trx.isCompleted()) throw refuse(ENDED)
    },
  )
}

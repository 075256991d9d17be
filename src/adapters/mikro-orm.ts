import type { Queryable } from '../driver/driver.ts'
import { isKnexTransaction, useKnex } from './knex.ts'
import { foreignClient } from './pg-transaction.ts'
import { hasMethods, isThing, refuse } from './shape.ts'

/** The subset of an entity manager of MikroORM that is used. */
interface MikroOrmManager {
  isInTransaction(): boolean
  getTransactionContext(): unknown
}

/**
 * An entity manager of MikroORM inside `em.transactional` or after `em.begin()`. Asked for its transaction at each
 * statement: the same manager may be in another one by then. MikroORM 6 keeps a transaction of Knex.
 */
export function recogniseMikroOrm(tx: unknown): Queryable | undefined {
  if (!isThing(tx) || !hasMethods(tx, ['isInTransaction', 'getTransactionContext', 'persist']))
    return undefined
  const em = tx as unknown as MikroOrmManager
  transactionOf(em)
  return {
    query: async (text, values, options) => await transactionOf(em).query(text, values, options),
  }
}

function transactionOf(em: MikroOrmManager): Queryable {
  if (!em.isInTransaction()) {
    throw refuse(
      'none is open on this entity manager: pass the "em" that em.transactional gives to its callback, or await em.begin() first',
    )
  }
  const transaction = em.getTransactionContext()
  if (!isKnexTransaction(transaction)) throw refuse(foreignClient)
  return useKnex(transaction)
}

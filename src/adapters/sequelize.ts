import type { Queryable } from '../driver/driver.ts'
import { foreignClient, type IsDirect, isPgClient, usePgClient } from './pg-transaction.ts'
import { ENDED, hasMethods, isThing, refuse } from './shape.ts'

/** The subset of a transaction of Sequelize that is used. */
interface SequelizeTransaction {
  readonly connection?: unknown
  /** How it ended; `undefined` while it is open. */
  readonly finished?: unknown
  /** The transaction whose savepoint this is. */
  readonly parent?: SequelizeTransaction | null | undefined
}

/** A transaction of Sequelize, or a nested one, which is a savepoint on the same connection. */
export function recogniseSequelize(tx: unknown, isDirect: IsDirect): Queryable | undefined {
  if (!isThing(tx)) return undefined
  if (hasMethods(tx, ['transaction', 'getQueryInterface', 'define'])) {
    throw refuse('it is a Sequelize instance: pass the "t" that sequelize.transaction gives to its callback')
  }
  if (!hasMethods(tx, ['commit', 'rollback', 'prepareEnvironment'])) return undefined
  const transaction = tx as SequelizeTransaction
  const requireOpen = (): void => {
    for (let at: SequelizeTransaction | null | undefined = transaction; at; at = at.parent) {
      if (at.finished !== undefined) throw refuse(ENDED)
    }
  }
  requireOpen()
  if (!isPgClient(transaction.connection)) throw refuse(foreignClient)
  return usePgClient(transaction.connection, isDirect, requireOpen)
}

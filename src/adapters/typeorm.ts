import type { Queryable } from '../driver/driver.ts'
import { useLaterPgClient } from './pg-transaction.ts'
import { hasMethods, isThing, refuse } from './shape.ts'

/** The subset of a query runner of TypeORM that is used. */
interface TypeOrmRunner {
  readonly isTransactionActive: boolean
  readonly isReleased: boolean
  /** Gives its client of pg; connects if it has none yet. */
  connect(): Promise<unknown>
}

/**
 * An entity manager of TypeORM inside `dataSource.transaction`, or a query runner after `startTransaction`. Its client
 * of pg is used, so that neither TypeORM's logger sees payloads nor its errors hide those of PostgreSQL.
 */
export function recogniseTypeOrm(tx: unknown): Queryable | undefined {
  if (!isThing(tx)) return undefined
  if (isRunner(tx)) return useRunner(tx)
  if (hasMethods(tx, ['getRepository', 'transaction'])) {
    if (isRunner(tx['queryRunner'])) return useRunner(tx['queryRunner'])
    throw refuse(
      'it is a DataSource of TypeORM, or an entity manager outside a transaction: pass the manager that ' +
        'dataSource.transaction gives to its callback, or a query runner after startTransaction()',
    )
  }
  return undefined
}

function useRunner(runner: TypeOrmRunner): Queryable {
  return useLaterPgClient(
    async () => await runner.connect(),
    () => {
      if (runner.isReleased || !runner.isTransactionActive) {
        throw refuse('none is open on this query runner: await queryRunner.startTransaction() first')
      }
    },
  )
}

function isRunner(value: unknown): value is TypeOrmRunner {
  return (
    isThing(value) &&
    hasMethods(value, ['connect', 'startTransaction', 'commitTransaction']) &&
    typeof value['isTransactionActive'] === 'boolean'
  )
}

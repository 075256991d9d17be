import type { Queryable, RawRow, WireValue } from '../driver/driver.ts'
import { findPostgresError, mapError } from '../driver/postgres-error.ts'
import { ENDED, hasMethods, isThing, refuse } from './shape.ts'
import { sendMarked } from './transaction-mark.ts'

/** The subset of a transaction of Kysely that is used, from `db.transaction()` or `db.startTransaction()`. */
interface KyselyTransaction {
  readonly isTransaction: boolean
  withoutPlugins(): KyselyTransaction
  executeQuery(query: CompiledQuery): Promise<{ readonly rows: readonly RawRow[] }>
}

/** What `CompiledQuery.raw` makes. */
interface CompiledQuery {
  readonly query: {
    readonly kind: 'RawNode'
    readonly sqlFragments: readonly string[]
    readonly parameters: []
  }
  readonly queryId: { readonly queryId: string }
  readonly sql: string
  readonly parameters: readonly unknown[]
}

/**
 * A transaction of Kysely over any of its dialects for PostgreSQL. It hides its connection, and it learns of a
 * commit only from the answer, so every statement is marked. Plugins would rename our columns, and are left out.
 */
export function recogniseKysely(tx: unknown): Queryable | undefined {
  if (!isKysely(tx)) return undefined
  if (!tx.isTransaction) {
    throw refuse(
      'it is a Kysely instance: pass the "trx" that db.transaction().execute gives to its callback, ' +
        'or the transaction of db.startTransaction()',
    )
  }
  return useKysely(tx.withoutPlugins())
}

function useKysely(trx: KyselyTransaction): Queryable {
  const send = async (text: string, values: readonly WireValue[]): Promise<readonly RawRow[]> =>
    (await trx.executeQuery(rawQuery(text, values))).rows
  return {
    async query(text, values, { operation = 'statement', schema } = {}) {
      try {
        return await sendMarked(send, text, values)
      } catch (error) {
        if (hasEnded(error)) throw refuse(ENDED, { cause: error })
        throw mapError(error, { operation, sent: true, repeatable: true, schema })
      }
    },
  }
}

function isKysely(value: unknown): value is KyselyTransaction {
  return (
    isThing(value) &&
    hasMethods(value, ['executeQuery', 'withoutPlugins', 'selectFrom']) &&
    typeof value['isTransaction'] === 'boolean'
  )
}

function rawQuery(text: string, values: readonly WireValue[]): CompiledQuery {
  return {
    query: { kind: 'RawNode', sqlFragments: [text], parameters: [] },
    queryId: { queryId: 'holdfast' },
    sql: text,
    parameters: values,
  }
}

/** Kysely has no class and no code for it. */
function hasEnded(error: unknown): boolean {
  return (
    error instanceof Error &&
    findPostgresError(error) === undefined &&
    /transaction is already (?:committed|rolled back)/i.test(error.message)
  )
}

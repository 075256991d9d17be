import type { PgliteTransaction } from '../adapters/pglite-connection.ts'
import type { EffectOwner } from '../base/errors.ts'
import type { TransactionWatch } from './guarded-pglite.ts'
import { countWrites, type WriteCount } from './sql/count-writes.ts'

/** Rows that a job or producer has written without declaring it. */
export interface UndeclaredWrite {
  readonly owner: EffectOwner
  /** What it would have to declare: `write:public.orders`; `write:orders` is as good. */
  readonly effect: string
  /** Rows that were inserted, updated and deleted, triggers included. */
  readonly rows: number
}

/**
 * Compares what each transaction of a job or producer writes with what that declares, by PostgreSQL's own counts. The counts are of
 * tables: what a rolled back savepoint wrote counts too.
 *
 * @param found Told of each table before the commit; what it throws rolls the transaction back.
 */
export function watchWrites(
  schema: string,
  found: (write: UndeclaredWrite, declared: readonly string[]) => void,
): TransactionWatch {
  return async (tx, declarer) => {
    const before = await read(tx, schema)
    return async () => {
      const { kind, name, effects } = declarer
      for (const [table, rows] of await read(tx, schema)) {
        const written = rows - (before.get(table) ?? 0)
        const [own, bare] = [`write:${table}`, `write:${table.slice(table.indexOf('.') + 1)}`]
        if (written === 0 || effects.includes(own) || effects.includes(bare)) continue
        found({ owner: { kind, name }, effect: own, rows: written }, effects)
      }
    }
  }
}

async function read(tx: PgliteTransaction, schema: string): Promise<ReadonlyMap<string, number>> {
  const { rows } = await tx.query(countWrites, [schema])
  return new Map(
    (rows as readonly WriteCount[]).map((each) => [`${each.schema}.${each.name}`, Number(each.rows)]),
  )
}

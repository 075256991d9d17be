import type { Queryable } from '../driver/driver.ts'
import { isPgliteInstance } from './database-url.ts'
import { type PgliteTransaction, queryPglite } from './pglite-connection.ts'
import { ENDED, isThing, refuse } from './shape.ts'

/** A transaction of PGlite: the `tx` of `db.transaction`. */
export function recognisePglite(tx: unknown): Queryable | undefined {
  if (isPgliteInstance(tx)) {
    throw refuse('it is a PGlite instance: pass the "tx" that db.transaction gives you')
  }
  return isPgliteTransaction(tx) ? usePgliteTransaction(tx) : undefined
}

function usePgliteTransaction(tx: PgliteTransaction): Queryable {
  requireOpen(tx)
  return {
    async query(text, values, options = {}) {
      requireOpen(tx)
      return await queryPglite(tx, text, values, { ...options, repeatable: true })
    },
  }
}

function requireOpen(tx: PgliteTransaction): void {
  if (tx.closed) throw refuse(ENDED)
}

function isPgliteTransaction(value: unknown): value is PgliteTransaction {
  return isThing(value) && typeof value['query'] === 'function' && typeof value['closed'] === 'boolean'
}

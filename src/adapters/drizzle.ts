import type { Queryable } from '../driver/driver.ts'
import { hasMethods, isThing, refuse, type Thing } from './shape.ts'

/**
 * What Drizzle's transaction runs on: a client of pg, or a transaction of postgres.js or PGlite. Its savepoints are
 * of the same connection, so that the statement belongs to whichever is open.
 *
 * The client itself is used: Drizzle's own `execute` would log payloads, and spread and parse by its own rules.
 */
export function recogniseDrizzle(
  tx: unknown,
  recogniseClient: (client: unknown) => Queryable | undefined,
): Queryable | undefined {
  if (!isDrizzle(tx)) return undefined
  if (!hasMethods(tx, ['rollback'])) {
    throw refuse('it is a Drizzle database: pass the "tx" that db.transaction gives to its callback')
  }
  const known = recogniseClient(tx.session['client'])
  if (known === undefined) {
    throw refuse('this Drizzle driver is not supported; those for pg, postgres.js and PGlite are')
  }
  return known
}

function isDrizzle(value: unknown): value is Thing & { readonly session: Thing } {
  return isThing(value) && hasMethods(value, ['execute', 'select']) && isThing(value['session'])
}

import type { Queryable } from '../driver/driver.ts'
import { isOpenTransaction } from '../driver/transaction.ts'
import { isPgPool } from './database-url.ts'
import { recogniseDrizzle } from './drizzle.ts'
import { recogniseKnex } from './knex.ts'
import { recogniseKysely } from './kysely.ts'
import { recogniseMikroOrm } from './mikro-orm.ts'
import { type IsDirect, isPgClient, neverDirect, usePgClient } from './pg-transaction.ts'
import { recognisePglite } from './pglite-transaction.ts'
import { recognisePostgresJs } from './postgres-js.ts'
import { recognisePrisma } from './prisma.ts'
import { recogniseSequelize } from './sequelize.ts'
import { refuse } from './shape.ts'
import { recogniseTypeOrm } from './typeorm.ts'

/**
 * Turns what the user passed as `tx` into a {@link Queryable}: what a driver or ORM gives inside a transaction, or
 * a transaction that a driver of ours opened. Known by shape; no library is imported.
 *
 * Statements go without a deadline: the connection is the user's, and so is its fate. They are prepared only where
 * `isDirect` says that a client of pg is connected to where the application is. None is sent
 * outside the transaction: where the library cannot tell that it is still open, PostgreSQL is made to
 * (`transaction-mark.ts`).
 *
 * @throws {TransactionRequiredError} It is a pool or instance, without an open transaction, ended, or unknown.
 * @throws {TransactionAbortedError} A statement in it failed before.
 */
export function recognise(tx: unknown, isDirect: IsDirect = neverDirect): Queryable {
  if (isOpenTransaction(tx)) return tx
  const recogniseClient = (client: unknown) => recogniseOwner(client, isDirect)
  const known =
    recogniseClient(tx) ??
    recogniseDrizzle(tx, recogniseClient) ??
    recogniseKysely(tx) ??
    recogniseKnex(tx) ??
    recogniseTypeOrm(tx) ??
    recogniseMikroOrm(tx) ??
    recogniseSequelize(tx, isDirect) ??
    recognisePrisma(tx)
  if (known) return known
  throw refuse(
    'what was passed is not one that is known; pass what your driver gives you inside a transaction',
  )
}

/** What owns connections itself, and what Drizzle runs on. */
function recogniseOwner(tx: unknown, isDirect: IsDirect): Queryable | undefined {
  if (isPgPool(tx)) throw refuse('it is a pool: take a client from it with connect() and begin there')
  if (isPgClient(tx)) return usePgClient(tx, isDirect)
  return recognisePglite(tx) ?? recognisePostgresJs(tx)
}

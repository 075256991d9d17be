import { TransactionAbortedError, TransactionRequiredError } from '../base/errors.ts'
import type { Queryable } from '../driver/driver.ts'
import { mapError } from '../driver/postgres-error.ts'
import { isOpenTransaction } from '../driver/transaction.ts'
import { isPgliteInstance, isPgPool } from './database-url.ts'
import { type PgClient, queryPgClient } from './pg-connection.ts'
import { type PgliteTransaction, queryPglite } from './pglite-connection.ts'

/**
 * Turns what the user passed as `tx` into a {@link Queryable}: a client of pg with an open transaction, a
 * transaction of PGlite, or one that a driver of ours opened.
 *
 * Statements go unnamed and without a deadline: the connection is the user's, and so is its fate. pg before 8.23
 * does not tell whether a transaction is open; such a client is taken at its word.
 *
 * @throws {TransactionRequiredError} It is a pool, a PGlite instance, without an open transaction, or unknown.
 * @throws {TransactionAbortedError} A statement in it failed before.
 */
export function recognise(tx: unknown): Queryable {
  if (isOpenTransaction(tx)) return tx
  if (isPgPool(tx)) throw refuse('it is a pool: take a client from it with connect() and begin there')
  if (isPgliteInstance(tx))
    throw refuse('it is a PGlite instance: pass the "tx" that db.transaction gives you')
  if (isPgliteTransaction(tx)) return usePgliteTransaction(tx)
  if (isPgClient(tx)) return usePgClient(tx)
  throw refuse(
    'what was passed is not one that is known; pass what your driver gives you inside a transaction',
  )
}

function usePgClient(client: PgClient): Queryable {
  requireTransaction(client)
  return {
    async query(text, values, options = {}) {
      requireTransaction(client)
      const { operation = 'statement', schema } = options
      try {
        return await queryPgClient(client, text, values)
      } catch (error) {
        // Repeatable: a transaction whose connection broke before its commit changed nothing.
        throw mapError(error, { operation, sent: true, repeatable: true, schema })
      }
    },
  }
}

function requireTransaction(client: PgClient): void {
  if (client.getTransactionStatus === undefined) return
  const status = client.getTransactionStatus()
  if (status === 'E') throw new TransactionAbortedError()
  if (status !== 'T') throw refuse('none is open on this client: await client.query("begin") first')
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
  if (tx.closed) throw refuse('this one has ended')
}

function isPgClient(value: unknown): value is PgClient {
  return (
    isObject(value) && typeof value['query'] === 'function' && typeof value['escapeIdentifier'] === 'function'
  )
}

function isPgliteTransaction(value: unknown): value is PgliteTransaction {
  return isObject(value) && typeof value['query'] === 'function' && typeof value['closed'] === 'boolean'
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function refuse(problem: string): TransactionRequiredError {
  return new TransactionRequiredError({ problem })
}

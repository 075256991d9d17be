import { TransactionAbortedError } from '../base/errors.ts'
import type { Queryable } from '../driver/driver.ts'
import { mapError } from '../driver/postgres-error.ts'
import { type PgClient, queryPgClient } from './pg-connection.ts'
import { isStale, mayPrepare } from './pg-prepared.ts'
import { querySubmitted } from './pg-statement.ts'
import { hasMethods, isThing, refuse } from './shape.ts'
import { sendMarked } from './transaction-mark.ts'

/** True for a client of pg: one's own, a pool's, or the one inside an ORM's transaction. */
export function isPgClient(value: unknown): value is PgClient {
  return isThing(value) && hasMethods(value, ['query', 'escapeIdentifier'])
}

/**
 * A client of pg with an open transaction, begun by whatever means. Statements go by `pg` itself, also where an ORM
 * holds the client: no type parser, name mapping or placeholder of the ORM is between us and PostgreSQL.
 *
 * pg before 8.23 does not tell whether a transaction is open; such a client is taken at its word.
 *
 * Statements go by their names only where `isDirect` says that the client is connected to where the application is: a
 * transaction pooler in between would lose them, and with them the transaction.
 *
 * @param requireOpen Throws if its owner knows that the transaction has ended.
 */
export function usePgClient(
  client: PgClient,
  isDirect: IsDirect,
  requireOpen: () => void = () => {},
): Queryable {
  requireOpen()
  requireTransaction(client)
  const keepsStatements = isDirect(client) && mayPrepare(client)
  return {
    keepsStatements,
    async query(text, values, options = {}) {
      requireOpen()
      requireTransaction(client)
      const { operation = 'statement', schema, name } = options
      const send = (sent: string, sentValues: typeof values) => queryPgClient(client, sent, sentValues)
      try {
        // A client that is busy may be about to commit: its status is that of before.
        if (isBusy(client)) return await sendMarked(send, text, values)
        const query = keepsStatements && !client.pipeline ? querySubmitted : queryPgClient
        return await query(client, text, values, keepsStatements ? name : undefined)
      } catch (error) {
        isStale(client, error)
        // Repeatable: a transaction whose connection broke before its commit changed nothing.
        throw mapError(error, { operation, sent: true, repeatable: true, schema })
      }
    },
  }
}

/** Tells whether a client is connected to where the application is, and statements may be prepared there. */
export type IsDirect = (client: object) => boolean

/** For clients of which nothing is known. */
export const neverDirect: IsDirect = () => false

/** {@link usePgClient} for an ORM that gives its client only when asked. */
export function useLaterPgClient(connect: () => Promise<unknown>, requireOpen: () => void): Queryable {
  requireOpen()
  return {
    async query(text, values, options) {
      requireOpen()
      const client = await connect()
      if (!isPgClient(client)) throw refuse(foreignClient)
      return await usePgClient(client, neverDirect, requireOpen).query(text, values, options)
    },
  }
}

export const foreignClient =
  'its connection is none of the package "pg", which is the one that is supported there'

function requireTransaction(client: PgClient): void {
  if (client.getTransactionStatus === undefined) return
  const status = client.getTransactionStatus()
  if (status === 'E') throw new TransactionAbortedError()
  if (status !== 'T') throw refuse('none is open on this client: await client.query("begin") first')
}

function isBusy(client: PgClient): boolean {
  return client.readyForQuery === false
}

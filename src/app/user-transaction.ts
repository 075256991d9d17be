import { TransactionRequiredError } from '../base/errors.ts'
import type { QueryResult } from '../driver/query-result.ts'
import type { Enqueuer } from '../jobs/enqueue.ts'
import { Transaction } from '../jobs/transaction.ts'
import { type OpenWork, ProducerTransaction } from '../producers/producer-transaction.ts'

/** The part of a `pg` client, or of a transaction of PGlite, that runs statements. */
interface UserQueryable {
  query(text: string, values: unknown[]): Promise<UserAnswer>
}

interface UserAnswer {
  readonly rows: readonly Record<string, unknown>[]
  /** As `pg` says it. */
  readonly rowCount?: number | null
  /** As PGlite says it. */
  readonly affectedRows?: number
}

/**
 * What a producer works in when it joins the transaction that a caller passed as `tx`: one of ours, that of another
 * producer, a `pg` client, or a transaction of PGlite.
 *
 * @throws {TransactionRequiredError} It is none of these, or not open.
 */
export function joinTransaction(
  tx: unknown,
  enqueuer: Enqueuer,
  requireOpen: (tx: unknown) => void,
): OpenWork {
  if (tx instanceof Transaction) return tx
  if (tx instanceof ProducerTransaction) return tx.work
  requireOpen(tx)
  return {
    query: async (text, values) => await queryAsUser(tx, text, values),
    enqueue: async (job, input, options) => await enqueuer.enqueue(job, input, { ...options, tx }),
    enqueueMany: async (jobs) => await enqueuer.enqueueMany(jobs, { tx }),
  }
}

async function queryAsUser(tx: unknown, text: string, values: readonly unknown[]): Promise<QueryResult> {
  const own = tx as Partial<UserQueryable>
  if (typeof own.query !== 'function') {
    const problem =
      'it has no "query(text, values)" for the statements of a producer: run those before, on your own'
    throw new TransactionRequiredError({ problem })
  }
  const { rows, rowCount, affectedRows } = (await own.query(text, [...values])) as UserAnswer
  // PGlite counts what was changed, and nothing for what was read.
  return { rows, rowCount: rowCount ?? (affectedRows || rows.length) }
}

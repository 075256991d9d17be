import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Stores jobs of which some carry a unique or an idempotency key; answers `[[id, status], …]` as JSON text.
 * Takes keys in one order and waits for transactions that hold them. Repeating it is safe for the items with
 * an idempotency key.
 */
export const enqueueKeyedJobs = operation({
  name: 'enqueue_keyed_jobs',
  params: { items: 'json' },
  columns: { answers: 'text' },
  text: (t, p) => sql`select ${t.enqueue_keyed_jobs}(${p.items}) as answers`,
})

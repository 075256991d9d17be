import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Stores jobs that carry no key. `items` is described at the function in `sql/migrations/0001-jobs.sql`, which is
 * also what enqueueing by SQL goes through; measured, it costs no more than the same statement sent as text.
 * Ids come as a JSON array of strings in the order of the items. Repeating it enqueues again.
 */
export const enqueueJobs = operation({
  name: 'enqueue_jobs',
  params: { items: 'json' },
  columns: { ids: 'text' },
  text: (t, p) => sql`select ${t.enqueue_jobs}(${p.items}) as ids`,
})

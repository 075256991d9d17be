import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** Forgets at most `maxRows` requests with an idempotency key that are too old to count. Waits for nobody. */
export const pruneSequenceRequests = operation({
  name: 'prune_sequence_requests',
  params: { maxRows: 'int4' },
  columns: { pruned: 'int4' },
  deadlineMs: 60_000,
  text: (t, p) => sql`select ${t.prune_sequence_requests}(${p.maxRows}) as pruned`,
})

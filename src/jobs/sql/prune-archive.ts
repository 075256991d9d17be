import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** Deletes a bounded number of archived jobs and idempotency keys that are past their time. Safe to repeat. */
export const pruneArchive = operation({
  name: 'prune_archive',
  params: { completedDays: 'float8', cancelledDays: 'float8', maxRows: 'int4' },
  columns: { pruned: 'int4' },
  repeatable: true,
  text: (t, p) =>
    sql`select ${t.prune_archive}(${p.completedDays} * interval '1 day', ${p.cancelledDays} * interval '1 day', ${p.maxRows}) as pruned`,
})

import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Drops the partitions of the oldest closed range of ids, moving what is still kept into the archive. `answer` is
 * described at the function in `sql/migrations/0002-retention.sql`. Locks the three parents for a moment. Safe to
 * repeat.
 */
export const retireRange = operation({
  name: 'retire_range',
  params: { completedDays: 'float8', cancelledDays: 'float8' },
  columns: { answer: 'text' },
  repeatable: true,
  deadlineMs: 120_000,
  text: (t, p) =>
    sql`select ${t.retire_range}(${p.completedDays} * interval '1 day', ${p.cancelledDays} * interval '1 day') as answer`,
})

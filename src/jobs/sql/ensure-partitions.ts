import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** Creates the partitions that the next millions of jobs need, if they are not there. Safe to repeat. */
export const ensurePartitions = operation({
  name: 'ensure_partitions',
  params: {},
  /** The first id that no partition covers. */
  columns: { endId: 'int8' },
  repeatable: true,
  text: (t) => sql`select ${t.ensure_partitions}() as end_id`,
})

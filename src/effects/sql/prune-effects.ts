import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** Forgets effects that have been known for `days`, and checkpoints of jobs that are gone; at most `maxRows` of each. */
export const pruneEffects = operation({
  name: 'prune_effects',
  params: { days: 'float8', maxRows: 'int4' },
  columns: { pruned: 'int4' },
  deadlineMs: 60_000,
  text: (t, p) => sql`select ${t.prune_effects}(${p.days} * interval '1 day', ${p.maxRows}) as pruned`,
})

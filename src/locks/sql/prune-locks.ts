import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Forgets resources that nobody has held for `keptMs`; looks at `maxRows` of each durability at most, and passes over what
 * is locked. Tokens go on rising.
 */
export const pruneLocks = operation({
  name: 'prune_locks',
  params: { keptMs: 'float8', maxRows: 'int4' },
  columns: { looked: 'int4' },
  deadlineMs: 60_000,
  repeatable: true,
  text: (t, p) => sql`
    select greatest(${t.prune_locks}(${p.keptMs} * interval '1 millisecond', ${p.maxRows}),
      ${t.prune_locks_ephemeral}(${p.keptMs} * interval '1 millisecond', ${p.maxRows})) as looked`,
})

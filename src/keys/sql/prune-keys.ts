import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** Marks expired keys as such; each is looked at again under its lock, and one that is locked is left. Safe to repeat. */
export const sweepKeys = operation({
  name: 'sweep_keys',
  params: { ephemeral: 'bool', maxRows: 'int4' },
  columns: { swept: 'int4' },
  repeatable: true,
  deadlineMs: 60_000,
  text: (t, p) => sql`select ${t.key_sweep}(${p.ephemeral}, ${p.maxRows}) as swept`,
})

/** Trims the history by what the function `key_trim` says, going on where the last call ended. One at a time. Safe to repeat. */
export const trimKeys = operation({
  name: 'trim_keys',
  params: { ephemeral: 'bool', keptDays: 'float8', keptChanges: 'int4', maxRows: 'int4' },
  columns: { looked: 'int4' },
  repeatable: true,
  deadlineMs: 60_000,
  text: (t, p) =>
    sql`select ${t.key_trim}(${p.ephemeral}, ${p.keptDays}, ${p.keptChanges}, ${p.maxRows}) as looked`,
})

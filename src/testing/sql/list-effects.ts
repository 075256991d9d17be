import { operation, type Row } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** What the ledger of effects holds, by name and key. A plain read. */
export const listEffects = operation({
  name: 'list_effects',
  params: {},
  columns: { tenant: 'text', name: 'text', key: 'text', state: 'text', calls: 'int4' },
  repeatable: true,
  text: (t) =>
    sql`select e.tenant, e.name, e.key, e.state::text as state, e.calls from ${t.effect} e order by e.name, e.key`,
})

export type LedgerEntry = Row<typeof listEffects>

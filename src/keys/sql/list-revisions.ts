import { operation } from '../../driver/operation.ts'
import { type ObjectName, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'

const historyParams = { tenant: 'text', key: 'text', before: 'int8?', maxRows: 'int4' } as const
const historyColumns = { revision: 'int8', value: 'bytes?', modifiedAt: 'instant' } as const

function historyText(
  changes: ObjectName,
  p: { readonly [K in keyof typeof historyParams]: Placeholder },
): SqlFragment {
  return sql`select c.revision, encode(c.value, 'hex') as value, (extract(epoch from c.modified_at) * 1000)::int8 as modified_at
    from ${changes} c
    where c.tenant = ${p.tenant} and c.key = ${p.key} and not c.norev and c.kind in ('set', 'deleted')
      and c.revision < coalesce(${p.before}, 9223372036854775807)
    order by c.revision desc limit ${p.maxRows}`
}

/** What the history has of a key, newest first; without a value where it was deleted. A plain read. */
export const listRevisions = operation({
  name: 'list_revisions',
  params: historyParams,
  columns: historyColumns,
  repeatable: true,
  text: (t, p) => historyText(t.key_change, p),
})

/** {@link listRevisions} of an ephemeral key. */
export const listEphemeralRevisions = operation({
  name: 'list_ephemeral_revisions',
  params: historyParams,
  columns: historyColumns,
  repeatable: true,
  text: (t, p) => historyText(t.ephemeral_key_change, p),
})

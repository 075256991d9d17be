import { operation } from '../../driver/operation.ts'
import { type ObjectName, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'
import { entryAnswer, entryColumns, spaceParams } from './key-params.ts'

const getParams = { tenant: 'text', key: 'text' } as const

function getText(
  values: ObjectName,
  p: { readonly [K in keyof typeof getParams]: Placeholder },
): SqlFragment {
  return sql`select ${entryAnswer()} from ${values} e
    where e.tenant = ${p.tenant} and e.key = ${p.key} and not e.deleted and (e.expires_at > clock_timestamp()) is not false`
}

/** The live value of a key, or no row. A plain read of one row, rather than a call of the function `key_get`, which means the same. */
export const getKey = operation({
  name: 'get_key',
  params: getParams,
  columns: entryColumns,
  repeatable: true,
  text: (t, p) => getText(t.key_value, p),
})

/** {@link getKey} for an ephemeral key. */
export const getEphemeralKey = operation({
  name: 'get_ephemeral_key',
  params: getParams,
  columns: entryColumns,
  repeatable: true,
  text: (t, p) => getText(t.ephemeral_key_value, p),
})

/** The value that a key had at a revision, or no row. A plain read. */
export const getKeyRevision = operation({
  name: 'get_key_revision',
  params: { ...spaceParams, key: 'text', revision: 'int8' },
  columns: entryColumns,
  repeatable: true,
  text: (t, p) => sql`select ${entryAnswer()}
    from ${t.key_get_revision}(${p.tenant}, ${p.ephemeral}, ${p.key}, ${p.revision}) e where e.found`,
})

/** The value that a key had at a time, or no row. A plain read. */
export const getKeyAsOf = operation({
  name: 'get_key_as_of',
  params: { ...spaceParams, key: 'text', atMs: 'int8' },
  columns: entryColumns,
  repeatable: true,
  text: (t, p) => sql`select ${entryAnswer()}
    from ${t.key_get_as_of}(${p.tenant}, ${p.ephemeral}, ${p.key}, ${p.atMs}) e where e.found`,
})

/** The value that a key had in a snapshot of the server, or no row. A plain read. */
export const getKeyInSnapshot = operation({
  name: 'get_key_in_snapshot',
  params: { ...spaceParams, key: 'text', seen: 'text', atMs: 'int8' },
  columns: entryColumns,
  repeatable: true,
  text: (t, p) => sql`select ${entryAnswer()}
    from ${t.key_get_in_snapshot}(${p.tenant}, ${p.ephemeral}, ${p.key}, ${p.seen}::pg_catalog.pg_snapshot, ${p.atMs}) e
    where e.found`,
})

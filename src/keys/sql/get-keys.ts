import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { entryAnswer, entryColumns, spaceParams } from './key-params.ts'

/**
 * The live values of several keys, each with the place of its key in `keys`, from 1 on; no row for one that is absent. All of
 * one moment but for expiry, which is of the moment the key is read. Plain reads.
 */
export const getKeys = operation({
  name: 'get_keys',
  params: { tenant: 'text', keys: 'text[]' },
  columns: { ...entryColumns, item: 'int8' },
  repeatable: true,
  text: (
    t,
    p,
  ) => sql`select n.item, ${entryAnswer()} from rows from (pg_catalog.unnest(${p.keys})) with ordinality n (key, item)
    cross join lateral (
      select k.value, k.revision, k.expires_at, k.modified_at from ${t.key_value} k
      where k.tenant = ${p.tenant} and k.key = n.key and not k.deleted and (k.expires_at > clock_timestamp()) is not false offset 0
    ) e order by n.item`,
})

/** {@link getKeys} for ephemeral keys. */
export const getEphemeralKeys = operation({
  name: 'get_ephemeral_keys',
  params: { tenant: 'text', keys: 'text[]' },
  columns: { ...entryColumns, item: 'int8' },
  repeatable: true,
  text: (
    t,
    p,
  ) => sql`select n.item, ${entryAnswer()} from rows from (pg_catalog.unnest(${p.keys})) with ordinality n (key, item)
    cross join lateral (
      select k.value, k.revision, k.expires_at, k.modified_at from ${t.ephemeral_key_value} k
      where k.tenant = ${p.tenant} and k.key = n.key and not k.deleted and (k.expires_at > clock_timestamp()) is not false offset 0
    ) e order by n.item`,
})

/** {@link getKeys} as of a time, or with `seen` in a snapshot of the server. */
export const getKeysAsOf = operation({
  name: 'get_keys_as_of',
  params: { ...spaceParams, keys: 'text[]', seen: 'text?', atMs: 'int8' },
  columns: { ...entryColumns, item: 'int8' },
  repeatable: true,
  text: (
    t,
    p,
  ) => sql`select n.item, ${entryAnswer()} from rows from (pg_catalog.unnest(${p.keys})) with ordinality n (key, item)
    cross join lateral (
      select * from ${t.key_get_as_of}(${p.tenant}, ${p.ephemeral}, n.key, ${p.atMs}) where ${p.seen} is null
      union all
      select * from ${t.key_get_in_snapshot}(${p.tenant}, ${p.ephemeral}, n.key, ${p.seen}::pg_catalog.pg_snapshot, ${p.atMs})
      where ${p.seen} is not null
    ) e where e.found order by n.item`,
})

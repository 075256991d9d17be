import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { spaceParams } from './key-params.ts'

/** What came of a set: `value` only where it was refused and the key is live. */
const setColumns = {
  done: 'bool',
  revision: 'int8',
  value: 'bytes?',
  expiresAt: 'instant?',
  modifiedAt: 'instant?',
} as const

/**
 * Sets a key if the conditions hold. Locks its row until the end of the transaction; a new key first enters the buckets
 * above it. Not to be repeated: a second set has the next revision, and a condition may hold no more.
 */
export const setKey = operation({
  name: 'set_key',
  params: {
    ...spaceParams,
    key: 'text',
    value: 'bytes',
    ttlMs: 'int8?',
    ifAbsent: 'bool',
    ifPresent: 'bool',
    ifValue: 'bytes?',
    ifRevision: 'int8?',
    norev: 'bool',
  },
  columns: setColumns,
  text: (
    t,
    p,
  ) => sql`select s.done, s.revision, case when not s.done then encode(s.value_now, 'hex') end as value,
      (date_part('epoch', s.expires_at) * 1000)::int8 as expires_at, (date_part('epoch', s.modified_at) * 1000)::int8 as modified_at
    from ${t.key_set}(${p.tenant}, ${p.ephemeral}, ${p.key}, ${p.value}, ${p.ttlMs}, ${p.ifAbsent}, ${p.ifPresent}, ${p.ifValue},
      ${p.ifRevision}, ${p.norev}) s`,
})

/** {@link setKey} for several keys in one transaction; their rows are locked in the order of the keys. `item` counts from 1. */
export const setKeys = operation({
  name: 'set_keys',
  params: {
    ...spaceParams,
    /** As the function `key_set_many` takes them. */
    items: 'json',
  },
  columns: { ...setColumns, item: 'int8' },
  text: (
    t,
    p,
  ) => sql`select s.item, s.done, s.revision, case when not s.done then encode(s.value_now, 'hex') end as value,
      (date_part('epoch', s.expires_at) * 1000)::int8 as expires_at, (date_part('epoch', s.modified_at) * 1000)::int8 as modified_at
    from ${t.key_set_many}(${p.tenant}, ${p.ephemeral}, ${p.items}) s order by s.item`,
})

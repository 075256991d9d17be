import { operation } from '../../driver/operation.ts'
import { type ObjectName, type Objects, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'
import { spaceParams } from './key-params.ts'

/** What came of a set: `value` only where it was refused and the key is live. */
const setColumns = {
  done: 'bool',
  revision: 'int8',
  value: 'bytes?',
  expiresAt: 'instant?',
  modifiedAt: 'instant?',
} as const

const setParams = {
  tenant: 'text',
  key: 'text',
  value: 'bytes',
  ttlMs: 'int8?',
  ifAbsent: 'bool',
  ifPresent: 'bool',
  ifValue: 'bytes?',
  ifRevision: 'int8?',
  norev: 'bool',
} as const

/** The answer of a row `s` of the function `key_set`. */
function setAnswer(): SqlFragment {
  return sql`s.done, s.revision, case when not s.done then encode(s.value_now, 'hex') end as value,
      (date_part('epoch', s.expires_at) * 1000)::int8 as expires_at, (date_part('epoch', s.modified_at) * 1000)::int8 as modified_at`
}

/**
 * Most sets are of a key that exists, and no condition needs the time: those are written by a plain update, whose row lock
 * comes before the place is drawn, as with the function. It is called for all others, and for what the update did not find;
 * it sees what was committed meanwhile. The update costs PostgreSQL a third of the call (decision 0016).
 */
function setText(
  tables: { readonly values: ObjectName; readonly changes: ObjectName; readonly ephemeral: SqlFragment },
  t: Objects,
  p: { readonly [K in keyof typeof setParams]: Placeholder },
): SqlFragment {
  const { values, changes, ephemeral } = tables
  return sql`with written as (
      update ${values} k set xid = pg_current_xact_id(), revision = k.revision + 1, deleted = false, norev = ${p.norev}, value = ${p.value},
        modified_at = case when ${t.enter_key_log}(${ephemeral}) then greatest(clock_timestamp(), k.modified_at) end,
        expires_at = case when ${p.ttlMs} > 0 then clock_timestamp() + ${p.ttlMs} * interval '1 millisecond' end
      where k.tenant = ${p.tenant} and k.key = ${p.key} and k.revision >= 0 and not ${p.ifAbsent}
        and (k.revision = ${p.ifRevision}) is not false
        and (k.expires_at is null or not ${p.ifPresent} and ${p.ifValue} is null)
        and not (k.deleted and ${p.ifPresent})
        and (case when k.deleted then '' else k.value end = ${p.ifValue}) is not false
        and k.xid <> pg_current_xact_id()
      returning k.revision, k.xid, k.modified_at, k.expires_at, k.norev, k.tenant, k.key, k.value
    ), logged as (
      insert into ${changes} as c (revision, xid, changed_at, modified_at, expires_at, kind, norev, tenant, key, value)
      select w.revision, w.xid, w.modified_at, w.modified_at, w.expires_at, 'set', w.norev, w.tenant, w.key, w.value from written w
      returning c.revision, c.expires_at, c.modified_at, true as done, null::bytea as value_now
    )
    select ${setAnswer()} from logged s
    where case when exists (select from ${t.key_watch_seq} w where w.is_called and w.last_value > date_part('epoch', clock_timestamp()))
      then ${t.tell_key_changed}(${p.tenant}, ${ephemeral}, ${p.key}) else true end
    union all
    select ${setAnswer()}
    from ${t.key_set}(${p.tenant}, ${ephemeral}, ${p.key}, ${p.value}, ${p.ttlMs}, ${p.ifAbsent}, ${p.ifPresent}, ${p.ifValue},
      ${p.ifRevision}, ${p.norev}) s
    where not exists (select from logged)`
}

/**
 * Sets a key if the conditions hold. Locks its row until the end of the transaction; a new key first enters the buckets
 * above it. Not to be repeated: a second set has the next revision, and a condition may hold no more.
 */
export const setKey = operation({
  name: 'set_key',
  params: setParams,
  columns: setColumns,
  text: (t, p) => setText({ values: t.key_value, changes: t.key_change, ephemeral: sql`false` }, t, p),
})

/** {@link setKey} for an ephemeral key. */
export const setEphemeralKey = operation({
  name: 'set_ephemeral_key',
  params: setParams,
  columns: setColumns,
  text: (t, p) =>
    setText({ values: t.ephemeral_key_value, changes: t.ephemeral_key_change, ephemeral: sql`true` }, t, p),
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
  text: (t, p) => sql`select s.item, ${setAnswer()}
    from ${t.key_set_many}(${p.tenant}, ${p.ephemeral}, ${p.items}) s order by s.item`,
})

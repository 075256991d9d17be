import { operation } from '../../driver/operation.ts'
import { type Objects, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'
import { spaceParams } from './key-params.ts'

/** What came of a set: `value` only where it was refused and the key is live. */
const setColumns = {
  done: 'bool',
  revision: 'int8',
  value: 'bytes?',
  expiresAt: 'instant?',
  modifiedAt: 'instant?',
} as const

const setParams = { tenant: 'text', key: 'text', value: 'bytes', ttlMs: 'int8?', norev: 'bool' } as const

const conditionParams = {
  ifAbsent: 'bool',
  ifPresent: 'bool',
  ifValue: 'bytes?',
  ifRevision: 'int8?',
} as const

type Placeholders<P> = { readonly [K in keyof P]: Placeholder }

/** The answer of `row`, which is what the function `key_set` gives. */
function setAnswer(row: SqlFragment): SqlFragment {
  return sql`${row}.done, ${row}.revision, case when not ${row}.done then encode(${row}.value_now, 'hex') end as value, ${setTimes(row)}`
}

function setTimes(row: SqlFragment): SqlFragment {
  return sql`(date_part('epoch', ${row}.expires_at) * 1000)::int8 as expires_at,
      (date_part('epoch', ${row}.modified_at) * 1000)::int8 as modified_at`
}

interface SetParts {
  readonly ephemeral: boolean
  /** What has to hold of the row `k`, besides. */
  readonly conditions: SqlFragment
  /** The function's arguments for the conditions. */
  readonly args: { readonly [K in keyof typeof conditionParams]: SqlFragment | Placeholder }
  readonly answer: (row: SqlFragment) => SqlFragment
}

/**
 * Most sets are of a key that exists, and no condition needs the time: those are written by a plain update, whose row lock
 * comes before the place is drawn, as with the function. It is called for all others, and for what the update did not find;
 * it sees what was committed meanwhile, and takes almost twice the time of PostgreSQL's processor (decision 0016).
 */
function setText(parts: SetParts, t: Objects, p: Placeholders<typeof setParams>): SqlFragment {
  const { conditions, args, answer } = parts
  const ephemeral = parts.ephemeral ? sql`true` : sql`false`
  const values = parts.ephemeral ? t.ephemeral_key_value : t.key_value
  const changes = parts.ephemeral ? t.ephemeral_key_change : t.key_change
  return sql`with written as (
      update ${values} k set xid = pg_current_xact_id(), revision = k.revision + 1, deleted = false, norev = ${p.norev}, value = ${p.value},
        modified_at = case when ${t.enter_key_log}(${ephemeral}) then greatest(clock_timestamp(), k.modified_at) end,
        expires_at = case when ${p.ttlMs} > 0 then clock_timestamp() + ${p.ttlMs} * interval '1 millisecond' end
      where k.tenant = ${p.tenant} and k.key = ${p.key} and k.revision >= 0 and k.xid <> pg_current_xact_id()${conditions}
      returning k.revision, k.xid, k.modified_at, k.expires_at, k.norev, k.tenant, k.key, k.value
    ), logged as (
      insert into ${changes} as c (revision, xid, changed_at, modified_at, expires_at, kind, norev, tenant, key, value)
      select w.revision, w.xid, w.modified_at, w.modified_at, w.expires_at, 'set', w.norev, w.tenant, w.key, w.value from written w
      returning c.revision, c.expires_at, c.modified_at, true as done, null::bytea as value_now
    )
    select ${answer(sql`s`)} from logged s
    where case when ${t.key_is_watched}() then ${t.tell_key_changed}(${p.tenant}, ${ephemeral}, ${p.key}) else true end
    union all
    select ${answer(sql`(s.answer)`)} from (
      select ${t.key_set}(${p.tenant}, ${ephemeral}, ${p.key}, ${p.value}, ${p.ttlMs}, ${args.ifAbsent}, ${args.ifPresent},
        ${args.ifValue}, ${args.ifRevision}, ${p.norev}) as answer
      where not exists (select from logged) offset 0
    ) s`
}

function settingText(ephemeral: boolean) {
  const none = { ifAbsent: sql`false`, ifPresent: sql`false`, ifValue: sql`null`, ifRevision: sql`null` }
  const answer = (row: SqlFragment) => sql`${row}.revision, ${setTimes(row)}`
  return (t: Objects, p: Placeholders<typeof setParams>) =>
    setText({ ephemeral, conditions: sql``, args: none, answer }, t, p)
}

function settingIfText(ephemeral: boolean) {
  return (t: Objects, p: Placeholders<typeof setParams & typeof conditionParams>) => {
    const conditions = sql` and not ${p.ifAbsent} and (k.revision = ${p.ifRevision}) is not false
        and (k.expires_at is null or not ${p.ifPresent} and ${p.ifValue} is null)
        and not (k.deleted and ${p.ifPresent})
        and (case when k.deleted then '' else k.value end = ${p.ifValue}) is not false`
    return setText({ ephemeral, conditions, args: p, answer: setAnswer }, t, p)
  }
}

const revisionColumns = { revision: 'int8', expiresAt: 'instant?', modifiedAt: 'instant' } as const

/**
 * Sets a key. Locks its row until the end of the transaction; a new key first enters the buckets above it. Not to be
 * repeated: a second set has the next revision.
 */
export const setKey = operation({
  name: 'set_key',
  params: setParams,
  columns: revisionColumns,
  text: settingText(false),
})

/** {@link setKey} for an ephemeral key. */
export const setEphemeralKey = operation({
  name: 'set_ephemeral_key',
  params: setParams,
  columns: revisionColumns,
  text: settingText(true),
})

/** {@link setKey} if the conditions hold, which after a first time they may do no more. */
export const setKeyIf = operation({
  name: 'set_key_if',
  params: { ...setParams, ...conditionParams },
  columns: setColumns,
  text: settingIfText(false),
})

/** {@link setKeyIf} for an ephemeral key. */
export const setEphemeralKeyIf = operation({
  name: 'set_ephemeral_key_if',
  params: { ...setParams, ...conditionParams },
  columns: setColumns,
  text: settingIfText(true),
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
  text: (t, p) => sql`select s.item, ${setAnswer(sql`s`)}
    from ${t.key_set_many}(${p.tenant}, ${p.ephemeral}, ${p.items}) s order by s.item`,
})

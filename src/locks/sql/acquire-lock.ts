import { operation } from '../../driver/operation.ts'
import { type ObjectName, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'

const params = {
  tenant: 'text',
  resource: 'text',
  owner: 'text',
  leaseMs: 'float8',
  /** How long the caller goes on trying, if this fails; null in a transaction that goes on. */
  waitMs: 'float8?',
} as const

const columns = {
  held: 'bool',
  /** The owner had it before: the same token, the lease as it was. */
  again: 'bool',
  fencingToken: 'int8?',
  endsAt: 'instant?',
  /** Of the lease of whoever holds it; null: a transaction that is open has the row. */
  leftMs: 'float8?',
} as const

type Params = { readonly [K in keyof typeof params]: Placeholder }

function calling(acquire: ObjectName, p: Params, unless: SqlFragment = sql``): SqlFragment {
  // A function in the select list, called once for the sake of `offset 0`: in `from` its row would be put into a store first.
  return sql`
    select (s.answer).held, (s.answer).again, (s.answer).fencing_token, (s.answer).left_ms,
      floor(date_part('epoch', (s.answer).ends_at) * 1000)::int8 as ends_at
    from (
      select ${acquire}(${p.tenant}, ${p.resource}, ${p.owner}, ${p.leaseMs}, ${p.waitMs}) as answer ${unless} offset 0
    ) s`
}

/**
 * A lock that is free is had by a plain update, after its row was locked as the function locks it. For everything else the
 * function is called, also if the row has changed since the statement began: its new place is not seen then. Not for a
 * transaction that goes on: a row that was granted to another between the look and the lock stays locked to the end.
 * The function takes twice the time of PostgreSQL's processor (decision 0017).
 */
function grantingText(
  locks: { readonly table: ObjectName; readonly acquire: ObjectName; readonly record: SqlFragment },
  p: Params,
): SqlFragment {
  return sql`with granted as (
      update ${locks.table} l set owner = ${p.owner}, token = default, acquired_at = clock_timestamp(),
        expires_at = clock_timestamp() + ${p.leaseMs} * interval '1 millisecond'
      where l.ctid = (
        select f.ctid from ${locks.table} f
        where f.tenant = ${p.tenant} and f.resource = ${p.resource} and (f.owner is null or f.expires_at < clock_timestamp())
        for update skip locked)
      returning l.token, l.expires_at as ends_at
    )
    select true as held, false as again, s.token as fencing_token,
      date_part('epoch', s.ends_at - clock_timestamp()) * 1000 as left_ms,
      floor(date_part('epoch', s.ends_at) * 1000)::int8 as ends_at
    from granted s
    where case when current_setting('synchronous_commit') in ('on', 'remote_apply') then true
      else set_config('synchronous_commit', 'on', true) is not null end${locks.record}
    union all
    ${calling(locks.acquire, p, sql`where not exists (select from granted)`)}`
}

/** A commit of unlogged rows alone waits for nothing: this makes it wait for the token's record in the log. */
const LOGGED = sql` and pg_logical_emit_message(true, 'holdfast', '') is not null`

/**
 * Grants a lock to its owner if it is free, or tells that the owner has it already, or refuses; never waits for a
 * holder. A grant locks the resource's row `for update`. Repeating a grant whose answer was lost, with the same owner, is no
 * second grant. A whole transaction of its own.
 */
export const acquireLock = operation({
  name: 'acquire_lock',
  params,
  columns,
  text: (t, p) => grantingText({ table: t.lock, acquire: t.acquire_lock, record: sql`` }, p),
})

/** {@link acquireLock} of a lock that a crash of the server may free. */
export const acquireEphemeralLock = operation({
  name: 'acquire_ephemeral_lock',
  params,
  columns,
  text: (t, p) =>
    grantingText({ table: t.lock_ephemeral, acquire: t.acquire_lock_ephemeral, record: LOGGED }, p),
})

/** {@link acquireLock} in a transaction that goes on: who is refused keeps no row locked. */
export const acquireLockInside = operation({
  name: 'acquire_lock_inside',
  params,
  columns,
  text: (t, p) => calling(t.acquire_lock, p),
})

/** {@link acquireLockInside} of a lock that a crash of the server may free. */
export const acquireEphemeralLockInside = operation({
  name: 'acquire_ephemeral_lock_inside',
  params,
  columns,
  text: (t, p) => calling(t.acquire_lock_ephemeral, p),
})

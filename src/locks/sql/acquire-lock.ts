import { operation } from '../../driver/operation.ts'
import { type ObjectName, type Objects, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'

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

function text(
  acquire: (t: Objects) => ObjectName,
): (t: Objects, p: { readonly [K in keyof typeof params]: Placeholder }) => SqlFragment {
  // A function in the select list, called once for the sake of `offset 0`: in `from` its row would be put into a store first.
  return (t, p) => sql`
    select (answer).held, (answer).again, (answer).fencing_token, (answer).left_ms,
      pg_catalog.floor(extract(epoch from (answer).ends_at) * 1000)::int8 as ends_at
    from (
      select ${acquire(t)}(${p.tenant}, ${p.resource}, ${p.owner}, ${p.leaseMs}, ${p.waitMs}) as answer offset 0
    ) called`
}

/**
 * Grants a lock to its owner if it is free, or tells that the owner has it already, or refuses; never waits for a
 * holder. A grant locks the resource's row `for update`; who is refused keeps no row locked. Repeating a grant whose answer was lost, with the same owner, is no
 * second grant.
 */
export const acquireLock = operation({
  name: 'acquire_lock',
  params,
  columns,
  text: text((t) => t.acquire_lock),
})

/** {@link acquireLock} of a lock that a crash of the server may free. */
export const acquireEphemeralLock = operation({
  name: 'acquire_ephemeral_lock',
  params,
  columns,
  text: text((t) => t.acquire_lock_ephemeral),
})

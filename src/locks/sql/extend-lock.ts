import { operation } from '../../driver/operation.ts'
import { type ObjectName, type Objects, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'

const params = {
  tenant: 'text',
  resource: 'text',
  owner: 'text',
  /** Null: whatever token the owner has. */
  token: 'int8?',
  leaseMs: 'float8',
} as const

const columns = {
  /** Null, as `leftMs`: the lock is not that owner's any more, or its lease is over. */
  endsAt: 'instant?',
  leftMs: 'float8?',
} as const

function text(
  extend: (t: Objects) => ObjectName,
): (t: Objects, p: { readonly [K in keyof typeof params]: Placeholder }) => SqlFragment {
  return (t, p) => sql`
    select floor(extract(epoch from ends_at) * 1000)::int8 as ends_at, left_ms
    from ${extend(t)}(${p.tenant}, ${p.resource}, ${p.owner}, ${p.token}, ${p.leaseMs})`
}

/** Lets the lease of a lock end so long from now. Locks the resource's row `for no key update`, and waits for who has it so. */
export const extendLock = operation({
  name: 'extend_lock',
  params,
  columns,
  repeatable: true,
  text: text((t) => t.extend_lock),
})

/** {@link extendLock} of a lock that a crash of the server may free. */
export const extendEphemeralLock = operation({
  name: 'extend_ephemeral_lock',
  params,
  columns,
  repeatable: true,
  text: text((t) => t.extend_lock_ephemeral),
})

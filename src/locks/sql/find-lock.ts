import { operation, type Row } from '../../driver/operation.ts'
import { type ObjectName, type Objects, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'

const params = { tenant: 'text', resource: 'text' } as const

const columns = { owner: 'text', fencingToken: 'int8', acquiredAt: 'instant', expiresAt: 'instant' } as const

function text(
  table: (t: Objects) => ObjectName,
): (t: Objects, p: { readonly [K in keyof typeof params]: Placeholder }) => SqlFragment {
  return (t, p) => sql`
    select l.owner, l.token as fencing_token, floor(extract(epoch from l.acquired_at) * 1000)::int8 as acquired_at,
      floor(extract(epoch from l.expires_at) * 1000)::int8 as expires_at
    from ${table(t)} l
    where l.tenant = ${p.tenant} and l.resource = ${p.resource}
      and l.owner is not null and l.expires_at >= clock_timestamp()`
}

/** Who holds a lock; no row if nobody does. Locks nothing. */
export const findLock = operation({
  name: 'find_lock',
  params,
  columns,
  repeatable: true,
  text: text((t) => t.lock),
})

/** {@link findLock} of a lock that a crash of the server may free. */
export const findEphemeralLock = operation({
  name: 'find_ephemeral_lock',
  params,
  columns,
  repeatable: true,
  text: text((t) => t.lock_ephemeral),
})

export type FoundLock = Row<typeof findLock>

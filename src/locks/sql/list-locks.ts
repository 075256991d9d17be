import { operation, type Row } from '../../driver/operation.ts'
import { type ObjectName, type Objects, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'

const params = {
  /** Null: of every tenant. */
  tenant: 'text?',
  afterTenant: 'text',
  afterResource: 'text',
  limit: 'int4',
} as const

const columns = {
  tenant: 'text',
  resource: 'text',
  owner: 'text',
  fencingToken: 'int8',
  acquiredAt: 'instant',
  expiresAt: 'instant',
} as const

function text(
  table: (t: Objects) => ObjectName,
): (t: Objects, p: { readonly [K in keyof typeof params]: Placeholder }) => SqlFragment {
  return (t, p) => sql`
    select l.tenant, l.resource, l.owner, l.token as fencing_token,
      floor(extract(epoch from l.acquired_at) * 1000)::int8 as acquired_at,
      floor(extract(epoch from l.expires_at) * 1000)::int8 as expires_at
    from ${table(t)} l
    where (l.tenant, l.resource) > (${p.afterTenant} collate "C", ${p.afterResource} collate "C")
      and (${p.tenant} is null or l.tenant = ${p.tenant})
      and l.owner is not null and l.expires_at >= clock_timestamp()
    order by l.tenant, l.resource
    limit ${p.limit}`
}

/** A page of the locks that are held, by tenant and resource. Locks nothing. Reads past the resources that nobody holds. */
export const listLocks = operation({
  name: 'list_locks',
  params,
  columns,
  repeatable: true,
  text: text((t) => t.lock),
})

/** {@link listLocks} of those that a crash of the server may free. */
export const listEphemeralLocks = operation({
  name: 'list_ephemeral_locks',
  params,
  columns,
  repeatable: true,
  text: text((t) => t.lock_ephemeral),
})

export type ListedLock = Row<typeof listLocks>

import { operation } from '../../driver/operation.ts'
import { type ObjectName, type Objects, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'

const params = {
  tenant: 'text',
  resource: 'text',
  owner: 'text',
  /** Null: whatever token the owner has. */
  token: 'int8?',
} as const

/** `released`; `before`: nobody has had it since it was released with that token; `lost`: it is not that owner's. */
const columns = { answer: 'text' } as const

/** Most locks are released by their holders: by a plain update. Why one was not found is told by the function. */
function text(
  locks: { readonly table: ObjectName; readonly release: ObjectName; readonly durability: SqlFragment },
  t: Objects,
  p: { readonly [K in keyof typeof params]: Placeholder },
): SqlFragment {
  return sql`with freed as (
      update ${locks.table} l set owner = null, expires_at = least(l.expires_at, clock_timestamp())
      where l.tenant = ${p.tenant} and l.resource = ${p.resource} and l.owner = ${p.owner} and l.token = coalesce(${p.token}, l.token)
      returning l.waited_until
    )
    select 'released' as answer from freed f
    where case when f.waited_until >= clock_timestamp()
      then ${t.tell_lock_free}(${locks.durability}, ${p.tenant}, ${p.resource}) else true end
    union all
    select ${locks.release}(${p.tenant}, ${p.resource}, ${p.owner}, ${p.token}) where not exists (select from freed)`
}

/**
 * Frees a lock of that owner, though its lease may be over. Locks the resource's row `for no key update`, and waits for who
 * has it so. A repetition finds it released.
 */
export const releaseLock = operation({
  name: 'release_lock',
  params,
  columns,
  repeatable: true,
  text: (t, p) => text({ table: t.lock, release: t.release_lock, durability: sql`'persistent'` }, t, p),
})

/** {@link releaseLock} of a lock that a crash of the server may free. */
export const releaseEphemeralLock = operation({
  name: 'release_ephemeral_lock',
  params,
  columns,
  repeatable: true,
  text: (t, p) =>
    text({ table: t.lock_ephemeral, release: t.release_lock_ephemeral, durability: sql`'ephemeral'` }, t, p),
})

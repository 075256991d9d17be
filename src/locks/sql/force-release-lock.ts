import { operation } from '../../driver/operation.ts'
import { type ObjectName, type Objects, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'

const params = { tenant: 'text', resource: 'text', actor: 'text', subject: 'text', reason: 'text' } as const

/** Both null: nobody holds it. */
const columns = { owner: 'text?', fencingToken: 'int8?' } as const

function text(
  release: (t: Objects) => ObjectName,
): (t: Objects, p: { readonly [K in keyof typeof params]: Placeholder }) => SqlFragment {
  return (t, p) => sql`
    select former_owner as owner, fencing_token
    from ${release(t)}(${p.tenant}, ${p.resource}, ${p.actor}, ${p.subject}, ${p.reason})`
}

/**
 * Takes a lock from whoever holds it, and says so in the audit. Locks the resource's row `for no key update`. Not to be
 * repeated blindly: the next holder's lock would go.
 */
export const forceReleaseLock = operation({
  name: 'force_release_lock',
  params,
  columns,
  text: text((t) => t.force_release_lock),
})

/** {@link forceReleaseLock} of a lock that a crash of the server may free. */
export const forceReleaseEphemeralLock = operation({
  name: 'force_release_ephemeral_lock',
  params,
  columns,
  text: text((t) => t.force_release_lock_ephemeral),
})

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

function text(
  release: (t: Objects) => ObjectName,
): (t: Objects, p: { readonly [K in keyof typeof params]: Placeholder }) => SqlFragment {
  return (t, p) => sql`
    select ${release(t)}(${p.tenant}, ${p.resource}, ${p.owner}, ${p.token}) as answer`
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
  text: text((t) => t.release_lock),
})

/** {@link releaseLock} of a lock that a crash of the server may free. */
export const releaseEphemeralLock = operation({
  name: 'release_ephemeral_lock',
  params,
  columns,
  repeatable: true,
  text: text((t) => t.release_lock_ephemeral),
})

import { attemptFence, attemptParams, fenceColumns } from '../../attempts/sql/attempt-fence.ts'
import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Asserts, in a transaction, that an attempt is still its worker's; holds it so until the transaction ends. With `idleMs`,
 * PostgreSQL ends the session if the transaction does nothing for so long, and the lease is free.
 */
export const fenceAttempt = operation({
  name: 'fence_attempt',
  params: { ...attemptParams, idleMs: 'int4?' },
  columns: fenceColumns,
  repeatable: true,
  text: (t, p) => sql`with ${attemptFence(t, p)}
    select exists (select from fence) and (${p.idleMs} is null
        or set_config('idle_in_transaction_session_timeout', ${p.idleMs}::text, true) is not null) as live,
      coalesce((select cancelled from fence), false) as cancelled`,
})

import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Waits until no transaction that has completed a job of the lease is open: whatever a commit without an answer was to
 * do is done then, or never will be. What it did must be read by a statement of its own, whose snapshot begins after the
 * wait. NO KEY UPDATE waits for their FOR SHARE, and not for transactions that are still at work (FOR KEY SHARE).
 */
export const lockLease = operation({
  name: 'lock_lease',
  params: { token: 'int8' },
  columns: { token: 'int8' },
  repeatable: true,
  text: (t, p) => sql`select token from ${t.lease} where token = ${p.token} for no key update`,
})

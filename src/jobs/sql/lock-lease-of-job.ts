import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * First half of a cancel, in a transaction: locks the lease of a job that executes, so that the second half, a
 * statement with a snapshot of its own, sees what a settle it waited for has recorded. NO KEY UPDATE: fenced
 * transactions of the same batch are not waited for.
 */
export const lockLeaseOfJob = operation({
  name: 'lock_lease_of_job',
  params: { jobId: 'int8' },
  columns: { token: 'int8' },
  text: (t, p) =>
    sql`select token from ${t.lease} where ${p.jobId} = any (job_ids) order by token for no key update`,
})

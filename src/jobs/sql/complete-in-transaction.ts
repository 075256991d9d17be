import { attemptParams, fenceAnswer, fenceColumns, isSettled } from '../../attempts/sql/attempt-fence.ts'
import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Records a job as completed inside the transaction that holds its business writes; releases its unique key. The lease
 * stays: other jobs of the batch may run under it, and whoever lost the answer to the commit asks by it.
 *
 * FOR SHARE, as a settle: a cancel that holds the lease is waited for and then seen, and one that comes later waits
 * until this transaction ends and finds the job completed.
 */
export const completeInTransaction = operation({
  name: 'complete_in_transaction',
  params: { ...attemptParams, durationMs: 'int4', late: 'bool', result: 'json?' },
  columns: fenceColumns,
  text: (t, p) => sql`with fence as materialized (
      select l.token, coalesce(l.attempts[${p.place}], 1::int2) as attempt, ${p.jobId} = any (l.cancelled) as cancelled
      from ${t.lease} l
      where l.token = ${p.token} and l.worker_id + 0 = ${p.workerId} and l.job_ids[${p.place}] = ${p.jobId}
        and not ${isSettled(t, sql`${p.jobId}`, sql`${p.token}`)}
      for share of l
    ), ended as (
      insert into ${t.outcome} (job_id, token, finished_at, duration_ms, attempts, late, state, result)
      select ${p.jobId}, token, clock_timestamp(), ${p.durationMs}, attempt, ${p.late}, 'completed', ${p.result}
      from fence where not cancelled
      returning job_id
    ), freed as (
      delete from ${t.unique_key} where job_id = any (array(select job_id from ended))
    )
    select ${fenceAnswer()}`,
})

import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Discards a job that waits: in ready, scheduled or parked. It frees its unique key and is never claimed again,
 * unless somebody retries it. No row: the job does not wait (or moves at this moment), and nothing was changed.
 *
 * Locks its row in those tables and waits for a claim that holds it, which then has the job. Safe to repeat. The row in ready is
 * found by queue and priority; linear in the backlog of that class.
 */
export const discardWaitingJob = operation({
  name: 'discard_waiting_job',
  params: { jobId: 'int8', reason: 'text' },
  columns: { jobId: 'text' },
  text: (t, p) => sql`with from_ready as (
      delete from ${t.ready} r using ${t.job} j
      where j.id = ${p.jobId} and r.queue = j.queue and r.priority = j.priority and r.job_id = j.id returning r.job_id, attempts
    ), from_scheduled as (
      delete from ${t.scheduled} where job_id = ${p.jobId} returning job_id, attempts
    ), from_parked as (
      delete from ${t.parked} where job_id = ${p.jobId} returning job_id, attempts
    ), ended as (
      insert into ${t.outcome} (job_id, finished_at, attempts, state, reason)
      select job_id, clock_timestamp(), attempts, 'discarded', ${p.reason} from (
        select * from from_ready union all select * from from_scheduled union all select * from from_parked) waiting
      returning job_id
    ), freed as (
      delete from ${t.unique_key} where job_id in (select job_id from ended)
    )
    select job_id::text from ended`,
})

import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Second half: cancels a job wherever it is: waiting, it ends cancelled now; executing, its lease is marked, which decides
 * that it will end cancelled whatever its handler does.
 *
 * `was`: `waiting`, `executing`, `finished` (nothing was changed), or null: not seen. A job that was not seen may
 * be moving between tables at this moment: look again in a fresh transaction. Locks its row in ready, scheduled
 * or parked. Safe to repeat.
 *
 * The row in ready is found by queue and priority; linear in the backlog of that class, some 100 ms per million.
 */
export const cancelJob = operation({
  name: 'cancel_job',
  params: { jobId: 'int8', reason: 'text?' },
  columns: { was: 'text?', state: 'text?', workerId: 'int8?' },
  text: (t, p) => sql`with from_ready as (
      delete from ${t.ready} r using ${t.job} j
      where j.id = ${p.jobId} and r.queue = j.queue and r.priority = j.priority and r.job_id = j.id returning r.job_id, attempts
    ), from_scheduled as (
      delete from ${t.scheduled} where job_id = ${p.jobId} returning job_id, attempts
    ), from_parked as (
      delete from ${t.parked} where job_id = ${p.jobId} returning job_id, attempts
    ), waiting as (
      select * from from_ready union all select * from from_scheduled union all select * from from_parked
    ), ended as (
      insert into ${t.outcome} (job_id, finished_at, attempts, state, reason)
      select job_id, clock_timestamp(), attempts, 'cancelled', ${p.reason} from waiting
      returning job_id
    ), freed as (
      delete from ${t.unique_key} where job_id in (select job_id from ended)
    ), marked as (
      update ${t.lease} l set cancelled = array_append(cancelled, ${p.jobId}),
        cancel_reasons = array_append(cancel_reasons, ${p.reason})
      where ${p.jobId} = any (l.job_ids) and not ${p.jobId} = any (l.cancelled)
        and not exists (select from ${t.outcome} o where o.job_id = ${p.jobId})
        and not exists (select from ${t.attempt} a where a.job_id = ${p.jobId} and a.token = l.token)
      returning l.worker_id
    ), already as (
      select worker_id from ${t.lease} l where ${p.jobId} = any (l.cancelled)
        and not exists (select from ${t.attempt} a where a.job_id = ${p.jobId} and a.token = l.token)
    ), executing as (
      select worker_id from marked union all select worker_id from already limit 1
    ), finished as (
      select state::text from ${t.outcome} where job_id = ${p.jobId}
    )
    select case when exists (select from ended) then 'waiting' when exists (select from finished) then 'finished'
        when exists (select from executing) then 'executing' end as was,
      (select state from finished) as state, (select worker_id from executing) as worker_id`,
})

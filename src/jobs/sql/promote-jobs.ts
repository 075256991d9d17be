import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { jobRow } from './probes.ts'

/**
 * Moves up to `limit` scheduled jobs that are due to `ready`, the longest due first. A job gets its place in the
 * queue (the default of `seq`) now, so jobs that fall due stand in the order of their due times, behind what became ready earlier.
 *
 * Other workers that sleep are told. `promoted` is how many were moved; equal to `limit`, there may be more. Locks rows of `scheduled` with
 * `skip locked`: any number of workers may promote at once. A repetition promotes the next ones.
 */
export const promoteJobs = operation({
  name: 'promote_jobs',
  params: { limit: 'int4' },
  columns: { promoted: 'int4', queues: 'json?' },
  text: (t, p) => sql`with due as (
      delete from ${t.scheduled} where ctid = any (array(
        select ctid from ${t.scheduled} where run_at <= clock_timestamp() order by run_at, job_id
        limit ${p.limit} for update skip locked))
      returning run_at, job_id, priority, attempts, crashes, queue
    ), placed as (
      insert into ${t.ready} (job_id, priority, attempts, crashes, care, queue)
      select due.job_id, due.priority, due.attempts, due.crashes,
        case when due.crashes >= 2 then 2 when due.attempts + 1 >= job.max_attempts then 1 else 0 end, due.queue
      from (select * from due order by run_at, job_id) due left join lateral ${jobRow(t, sql`due.job_id`)} job on true
      returning queue
    )
    select (select count(*)::int4 from due) as promoted, (select json_agg(distinct queue)::text from placed) as queues,
      (select ${t.announce}(array_agg(distinct queue)) from placed) as announced`,
})

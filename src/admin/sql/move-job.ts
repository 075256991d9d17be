import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { tellPlaces } from '../../jobs/sql/came-back.ts'

/**
 * Moves a waiting job to another queue, where it keeps its place by age and its priority. No row: the job does
 * not wait, and nothing was changed. Locks its row in ready, scheduled or parked, then the job's. Safe to repeat.
 */
export const moveJob = operation({
  name: 'move_job',
  params: { jobId: 'int8', queue: 'text' },
  columns: { jobId: 'text' },
  text: (t, p) => sql`with in_ready as (
      update ${t.ready} r set queue = ${p.queue} from ${t.job} j
      where j.id = ${p.jobId} and r.queue = j.queue and r.priority = j.priority and r.job_id = j.id
      returning r.job_id, r.queue, r.priority, r.seq
    ), in_scheduled as (
      update ${t.scheduled} set queue = ${p.queue} where job_id = ${p.jobId} returning job_id
    ), in_parked as (
      update ${t.parked} set queue = ${p.queue} where job_id = ${p.jobId} returning job_id
    ), moved as (
      update ${t.job} set queue = ${p.queue} where id in (
        select job_id from in_ready union all select job_id from in_scheduled union all select job_id from in_parked)
      returning id
    )
    select id::text as job_id, (select ${t.announce}(array[${p.queue}]) from in_ready) as announced,
      ${tellPlaces(sql`in_ready`)} as told
    from moved`,
})

import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { tellPlaces } from '../../jobs/sql/came-back.ts'

/**
 * Moves up to `limit` waiting jobs of each kind from one queue to another, as {@link moveJob} does. Repeat until
 * `moved` is 0; a crash in between leaves the rest for the next call.
 *
 * `skip locked`: a job that a worker is claiming is its. Executing jobs stay with their queue, and
 * come back to it if they are retried. Linear in all scheduled jobs for each call, since those have no index by queue.
 */
export const moveQueueJobs = operation({
  name: 'move_queue_jobs',
  params: { fromQueue: 'text', queue: 'text', limit: 'int4' },
  columns: { moved: 'int4' },
  text: (t, p) => sql`with in_ready as (
      update ${t.ready} set queue = ${p.queue} where ctid = any (array(
        select ctid from ${t.ready} where queue = ${p.fromQueue} order by priority, seq limit ${p.limit} for update skip locked))
      returning job_id, queue, priority, seq
    ), in_scheduled as (
      update ${t.scheduled} set queue = ${p.queue} where ctid = any (array(
        select ctid from ${t.scheduled} where queue = ${p.fromQueue} limit ${p.limit} for update skip locked))
      returning job_id
    ), in_parked as (
      update ${t.parked} set queue = ${p.queue} where ctid = any (array(
        select ctid from ${t.parked} where queue = ${p.fromQueue} limit ${p.limit} for update skip locked))
      returning job_id
    ), moved as (
      update ${t.job} set queue = ${p.queue} where id in (
        select job_id from in_ready union all select job_id from in_scheduled union all select job_id from in_parked)
      returning id
    )
    select (select count(*)::int4 from moved) as moved,
      (select ${t.announce}(array[${p.queue}]) where exists (select from in_ready)) as announced,
      ${tellPlaces(sql`in_ready`)} as told`,
})

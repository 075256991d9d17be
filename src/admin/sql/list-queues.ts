import { operation, type Row } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { hasAttempt, hasEnded } from '../../jobs/sql/probes.ts'

/**
 * Every queue that a job, a definition, a pause or a live worker names, with what waits in it. `oldestAt` is when the
 * first job of the longest waiting class fell due. Counts all waiting rows: some 100 ms per million. A plain read.
 */
export const listQueueRows = operation({
  name: 'list_queues',
  params: {},
  columns: {
    name: 'text',
    available: 'int8',
    scheduled: 'int8',
    parked: 'int8',
    executing: 'int8',
    oldestAt: 'instant?',
    workers: 'int4',
    slots: 'int4',
    pausedAt: 'instant?',
    pauseReason: 'text?',
    now: 'instant',
  },
  repeatable: true,
  text: (t) => sql`with class as materialized (
      select queue, priority, count(*) as jobs, min(seq) as seq from ${t.ready} group by queue, priority
    ), available as (
      select class.queue, sum(class.jobs)::int8 as jobs, min(coalesce(j.run_at, j.enqueued_at)) as oldest_at
      from class left join ${t.ready} r on r.queue = class.queue and r.priority = class.priority and r.seq = class.seq
        left join ${t.job} j on j.id = r.job_id
      group by class.queue
    ), scheduled as (
      select queue, count(*) as jobs from ${t.scheduled} group by queue
    ), parked as (
      select queue, count(*) as jobs from ${t.parked} group by queue
    ), executing as (
      select j.queue, count(*) as jobs
      from ${t.lease} l cross join lateral pg_catalog.unnest(l.job_ids) h (job_id) join ${t.job} j on j.id = h.job_id
      where not ${hasAttempt(t, sql`h.job_id`, sql`l.token`)}
        and not ${hasEnded(t, sql`h.job_id`)}
      group by j.queue
    ), served as (
      select q ->> 'name' as queue, count(*)::int4 as workers, sum((q ->> 'concurrency')::int4)::int4 as slots
      from ${t.worker} w cross join lateral json_array_elements(w.queues) q
      where w.heartbeat_at + w.lease_ms * interval '1 millisecond' >= clock_timestamp()
      group by 1
    ), known as (
      select queue as name from available union select queue from scheduled union select queue from parked
      union select queue from executing union select queue from served union select name from ${t.queue}
      union select queue from ${t.job_definition}
    )
    select known.name, coalesce(a.jobs, 0) as available, coalesce(s.jobs, 0) as scheduled, coalesce(k.jobs, 0) as parked,
      coalesce(e.jobs, 0) as executing, (extract(epoch from a.oldest_at) * 1000)::int8 as oldest_at,
      coalesce(served.workers, 0) as workers, coalesce(served.slots, 0) as slots,
      (extract(epoch from q.paused_at) * 1000)::int8 as paused_at, q.pause_reason,
      (extract(epoch from clock_timestamp()) * 1000)::int8 as now
    from known left join available a on a.queue = known.name left join scheduled s on s.queue = known.name
      left join parked k on k.queue = known.name left join executing e on e.queue = known.name
      left join served on served.queue = known.name left join ${t.queue} q on q.name = known.name
    order by known.name collate "C"`,
})

export type QueueRow = Row<typeof listQueueRows>

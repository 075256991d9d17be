import { operation, type Row } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { hasAttempt, hasEnded } from '../../jobs/sql/probes.ts'

/**
 * What a waiting job depends on: whether its queue is paused, which live workers serve it, how many jobs stand
 * before it (counted to 10,001), how many slots are busy. A plain read.
 */
export const findSurroundings = operation({
  name: 'find_surroundings',
  params: { queue: 'text', jobName: 'text', priority: 'int2', seq: 'int8?' },
  columns: {
    pausedAt: 'instant?',
    pauseReason: 'text?',
    workers: 'int4',
    serving: 'int4',
    knowing: 'int4',
    slots: 'int4',
    executing: 'int4',
    ahead: 'int4',
  },
  repeatable: true,
  text: (t, p) => sql`with alive as materialized (
      select w.id, w.jobs, (
          select sum((q ->> 'concurrency')::int4) from json_array_elements(w.queues) q where q ->> 'name' = ${p.queue}
        )::int4 as slots
      from ${t.worker} w where w.heartbeat_at + w.lease_ms * interval '1 millisecond' >= clock_timestamp()
    ), serving as materialized (select * from alive where slots is not null)
    select (extract(epoch from q.paused_at) * 1000)::int8 as paused_at, q.pause_reason,
      (select count(*)::int4 from alive) as workers, (select count(*)::int4 from serving) as serving,
      (select count(*)::int4 from serving where exists (
        select from json_array_elements(serving.jobs) j where j ->> 'name' = ${p.jobName})) as knowing,
      (select coalesce(sum(slots), 0)::int4 from serving) as slots,
      (select count(*)::int4 from ${t.lease} l cross join lateral pg_catalog.unnest(l.job_ids) h (job_id)
        where l.worker_id in (select id from serving)
          and not ${hasAttempt(t, sql`h.job_id`, sql`l.token`)}
          and not ${hasEnded(t, sql`h.job_id`)}
          and exists (select from ${t.job} j where j.id = h.job_id and j.queue = ${p.queue})) as executing,
      (select count(*)::int4 from (select from ${t.ready} r where r.queue = ${p.queue}
        and (r.priority, r.seq) < (${p.priority}, ${p.seq}) order by r.priority, r.seq limit 10001) before) as ahead
    from (select 1) one left join ${t.queue} q on q.name = ${p.queue}`,
})

export type Surroundings = Row<typeof findSurroundings>

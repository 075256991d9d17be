import { operation, type Row } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { hasAttempt, hasEnded } from '../../jobs/sql/probes.ts'

/**
 * A page of jobs, newest id first, below `below`: stable while jobs come and move, since an id never changes.
 * Inputs and results are not in it. Each table is cut to `limit` before they are joined, so a page of all states
 * costs the same behind any history; a filter costs a scan of what it passes over. A plain read of one snapshot.
 */
export const listJobRows = operation({
  name: 'list_jobs',
  params: { state: 'text?', queue: 'text?', name: 'text?', below: 'int8', limit: 'int4' },
  columns: {
    id: 'text',
    name: 'text',
    queue: 'text',
    tenant: 'text',
    state: 'text',
    attempts: 'int4',
    maxAttempts: 'int4',
    priority: 'int4',
    uniqueKey: 'text?',
    enqueuedAt: 'instant',
    runAt: 'instant?',
    finishedAt: 'instant?',
    reason: 'text?',
    workerId: 'text?',
  },
  repeatable: true,
  text: (t, p) => sql`with place as (
      (select r.job_id, 'available' as state, r.attempts, null::timestamptz as run_at, null::timestamptz as finished_at,
          null::text as reason, null::bigint as worker_id
        from ${t.ready} r
        where (${p.state} is null or ${p.state} = 'available') and r.job_id < ${p.below}
          and (${p.queue} is null or r.queue = ${p.queue})
          and (${p.name} is null or exists (select from ${t.job} j where j.id = r.job_id and j.name = ${p.name}))
        order by r.job_id desc limit ${p.limit})
      union all
      (select s.job_id, case when s.retrying then 'retryable' else 'scheduled' end, s.attempts, s.run_at, null, null, null
        from ${t.scheduled} s
        where (${p.state} is null or ${p.state} = case when s.retrying then 'retryable' else 'scheduled' end)
          and s.job_id < ${p.below} and (${p.queue} is null or s.queue = ${p.queue})
          and (${p.name} is null or exists (select from ${t.job} j where j.id = s.job_id and j.name = ${p.name}))
        order by s.job_id desc limit ${p.limit})
      union all
      (select k.job_id, 'available', k.attempts, null, null, k.reason, null
        from ${t.parked} k
        where (${p.state} is null or ${p.state} = 'available') and k.job_id < ${p.below}
          and (${p.queue} is null or k.queue = ${p.queue}) and (${p.name} is null or k.name = ${p.name})
        order by k.job_id desc limit ${p.limit})
      union all
      (select h.job_id, 'executing', coalesce(h.attempt, 1), null, null,
          case when h.job_id = any (l.cancelled) then 'cancel requested' end, l.worker_id
        from ${t.lease} l cross join lateral unnest(l.job_ids, l.attempts) h (job_id, attempt)
        where (${p.state} is null or ${p.state} = 'executing') and h.job_id < ${p.below}
          and not ${hasAttempt(t, sql`h.job_id`, sql`l.token`)}
          and not ${hasEnded(t, sql`h.job_id`)}
          and exists (select from ${t.job} j where j.id = h.job_id
            and (${p.queue} is null or j.queue = ${p.queue}) and (${p.name} is null or j.name = ${p.name}))
        order by h.job_id desc limit ${p.limit})
      union all
      (select o.job_id, o.state::text, o.attempts, null, o.finished_at, o.reason, null
        from ${t.outcome} o
        where (${p.state} is null or ${p.state} = o.state::text) and o.job_id < ${p.below}
          and ((${p.queue} is null and ${p.name} is null) or exists (select from ${t.job} j where j.id = o.job_id
            and (${p.queue} is null or j.queue = ${p.queue}) and (${p.name} is null or j.name = ${p.name})))
        order by o.job_id desc limit ${p.limit})
    )
    select job.id::text, job.name, job.queue, job.tenant, place.state, place.attempts::int4, job.max_attempts::int4,
      job.priority::int4, job.unique_key, (extract(epoch from job.enqueued_at) * 1000)::int8 as enqueued_at,
      (extract(epoch from coalesce(place.run_at, job.run_at)) * 1000)::int8 as run_at,
      (extract(epoch from place.finished_at) * 1000)::int8 as finished_at, place.reason, place.worker_id::text
    from (select * from place order by job_id desc limit ${p.limit}) place join ${t.job} job on job.id = place.job_id
    order by job.id desc`,
})

export type ListedJob = Row<typeof listJobRows>

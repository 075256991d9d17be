import { operation, type Row } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { hasAttempt, hasEnded } from '../../jobs/sql/probes.ts'

/**
 * All that is stored of one job, with the place it is in. JSON comes as text, digit for digit. `state` is null if
 * no table holds the job: then it is moving at this moment, or a row was deleted by hand.
 *
 * The row in ready is found by queue and priority; linear in the backlog of that class. A plain read.
 */
export const findJobFacts = operation({
  name: 'find_job_facts',
  params: { jobId: 'int8' },
  columns: {
    id: 'text',
    name: 'text',
    queue: 'text',
    tenant: 'text',
    priority: 'int4',
    maxAttempts: 'int4',
    uniqueKey: 'text?',
    contract: 'text?',
    enqueuedAt: 'instant',
    askedAt: 'instant?',
    input: 'text',
    context: 'text?',
    state: 'text?',
    attempts: 'int4?',
    crashes: 'int4?',
    seq: 'int8?',
    runAt: 'instant?',
    parkedAt: 'instant?',
    reason: 'text?',
    refusedContract: 'text?',
    fencingToken: 'text?',
    claimedAt: 'instant?',
    workerId: 'text?',
    workerName: 'text?',
    leaseUntil: 'instant?',
    isLeaseOver: 'bool?',
    finishedAt: 'instant?',
    durationMs: 'int4?',
    isLate: 'bool?',
    result: 'text?',
    error: 'text?',
    now: 'instant',
  },
  repeatable: true,
  text: (
    t,
    p,
  ) => sql`select job.id::text, job.name, job.queue, job.tenant, job.priority::int4, job.max_attempts::int4,
      job.unique_key, job.contract, (extract(epoch from job.enqueued_at) * 1000)::int8 as enqueued_at,
      (extract(epoch from job.run_at) * 1000)::int8 as asked_at, job.input::text, job.context::text,
      place.state, place.attempts::int4, place.crashes::int4, place.seq,
      (extract(epoch from place.run_at) * 1000)::int8 as run_at,
      (extract(epoch from place.parked_at) * 1000)::int8 as parked_at, place.reason, place.refused_contract,
      place.token::text as fencing_token, (extract(epoch from place.claimed_at) * 1000)::int8 as claimed_at,
      place.worker_id::text, w.name as worker_name,
      (extract(epoch from w.heartbeat_at + w.lease_ms * interval '1 millisecond') * 1000)::int8 as lease_until,
      case when place.worker_id is not null
        then coalesce(w.heartbeat_at + w.lease_ms * interval '1 millisecond' < clock_timestamp(), true) end as is_lease_over,
      (extract(epoch from place.finished_at) * 1000)::int8 as finished_at, place.duration_ms, place.late as is_late,
      place.result::text, place.error::text, (extract(epoch from clock_timestamp()) * 1000)::int8 as now
    from ${t.job} job left join lateral (
      select 'available' as state, r.attempts, r.crashes, r.seq, null::timestamptz as run_at, null::timestamptz as parked_at,
        null::text as reason, null::text as refused_contract, null::bigint as token, null::timestamptz as claimed_at,
        null::bigint as worker_id, null::timestamptz as finished_at, null::int4 as duration_ms, null::bool as late,
        null::json as result, null::json as error
      from ${t.ready} r where r.queue = job.queue and r.priority = job.priority and r.job_id = job.id
      union all
      select case when s.retrying then 'retryable' else 'scheduled' end, s.attempts, s.crashes, null, s.run_at, null, null, null,
        null, null, null, null, null, null, null, null
      from ${t.scheduled} s where s.job_id = job.id
      union all
      select 'available', k.attempts, k.crashes, null, null, k.parked_at, k.reason, k.refused_contract,
        null, null, null, null, null, null, null, null
      from ${t.parked} k where k.job_id = job.id
      union all
      select 'executing', coalesce(h.attempt, 1), coalesce(h.crashes, 0), null, null, null,
        case when job.id = any (l.cancelled) then 'cancel requested' end, null, l.token, l.claimed_at, l.worker_id,
        null, null, null, null, null
      from ${t.lease} l cross join lateral unnest(l.job_ids, l.attempts, l.crashes) h (job_id, attempt, crashes)
      where h.job_id = job.id
        and not ${hasAttempt(t, sql`job.id`, sql`l.token`)}
        and not ${hasEnded(t, sql`job.id`)}
      union all
      select o.state::text, o.attempts, null, null, null, null, o.reason, null, o.token, null, null, o.finished_at,
        o.duration_ms, o.late, o.result, o.error
      from ${t.outcome} o where o.job_id = job.id
    ) place on true left join ${t.worker} w on w.id = place.worker_id
    where job.id = ${p.jobId}`,
})

export type JobFactsRow = Row<typeof findJobFacts>

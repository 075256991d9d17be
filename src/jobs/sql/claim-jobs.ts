import { operation, type Params, type Row } from '../../driver/operation.ts'
import { type Objects, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'
import { jobRows } from './probes.ts'

export const claimParams = {
  workerId: 'int8',
  /** The queues to claim from, each with how many jobs at most and for how many a slot is free now. */
  queues: 'text[]',
  wanted: 'int4[]',
  free: 'int4[]',
  /**
   * Stretches of the queues to look at, in the order of (priority, seq): behind (priority, after), up to and with
   * (last priority, upto). One for a whole queue, or one for each priority where a look starts at a mark.
   */
  classQueues: 'text[]',
  classPriorities: 'int2[]',
  after: 'int8[]',
  lastPriorities: 'int2[]',
  upto: 'int8[]',
  /** False while this process runs a job that has cost two workers their life: such jobs run one at a time. */
  suspects: 'bool',
} as const

/**
 * What a claim gives: the jobs column by column, in the order in which they are to start, which is also their order
 * in the lease. Measured, an array of 400 values costs PostgreSQL and Node half of 400 rows or 400 small arrays
 * (docs/decisions/0002-storage-and-fences.md); an array of numbers half of one in JSON.
 */
export const claimColumns = {
  token: 'int8?',
  ids: 'int8[]?',
  /** Null for a job whose row is gone. */
  names: 'json?',
  /** Null if only one queue was asked. */
  queues: 'json?',
  /** Number of this attempt; null if it is the first of all. */
  attempts: 'int8[]?',
  maxAttempts: 'int8[]?',
  /** Milliseconds since the epoch. */
  enqueuedAts: 'int8[]?',
  inputs: 'json?',
  /** By id, of jobs that have any of it: `[care, holds a unique key, run at in ms, tenant, context, has a checkpoint]`. */
  extras: 'json?',
  /** `[queue, priority, highest seq]` for each class that was claimed from; a null queue is the one that was asked. */
  marks: 'json?',
} as const

/** What a look tells beside the jobs. */
export const lookColumns = {
  /** Every job that was visible before this place in the queue was looked at, if fewer came than were asked for. */
  horizon: 'int8',
  /** Which transactions it knew of: the text of a `pg_snapshot`. Places up to the horizon may have been drawn by later ones. */
  snapshot: 'text',
  /** Jobs that need care were there, and were left for want of a free slot. */
  passedOver: 'bool',
  /** What the statement took on the server. */
  elapsedMs: 'float8',
} as const

type ClaimPlaceholders = { readonly [K in keyof typeof claimParams]: Placeholder }

/**
 * The claim as a list of common table expressions, to be a statement of its own or to follow a settle; what it gives
 * is {@link claimAnswer}.
 *
 * `ctid = any (…)` takes at most what was asked for under every plan: a locking subquery joined to the delete may
 * run once per outer row. The constant limit within is the most that a worker asks for (`MAX_BATCH`); it tells the
 * planner, which cannot know `wanted`, that few rows are read, and keeps it at the index's order. A row that was
 * locked but is not taken is free again at commit.
 */
export function claimSteps(t: Objects, p: ClaimPlaceholders): SqlFragment {
  return sql`asked as materialized (
      select asked.*, (select last_value from ${t.job_seq}) as horizon
      from unnest(${p.queues}, ${p.wanted}, ${p.free}) with ordinality asked (queue, wanted, free, nth)
      where not exists (select from ${t.queue} q where q.name = asked.queue and q.paused_at is not null)
    ), picked as materialized (
      select asked.nth, r.* from asked cross join lateral (
        select r.* from unnest(${p.classQueues}, ${p.classPriorities}, ${p.after}, ${p.lastPriorities}, ${p.upto})
          class (queue, priority, after, last_priority, upto)
        cross join lateral (
          select r.ctid as place, r.priority, r.seq, r.care from ${t.ready} r
          where r.queue = class.queue and (r.priority, r.seq) > (class.priority, class.after)
            and (r.priority, r.seq) <= (class.last_priority, class.upto) and (r.care < 2 or ${p.suspects})
          order by r.priority, r.seq limit 400 for update skip locked
        ) r
        where class.queue = asked.queue limit asked.wanted
      ) r
    ), seen as materialized (
      select count(*) as size, array_agg(place) filter (where care = 0) as plain, count(*) filter (where care > 0) as careful
      from picked
    ), taken as (
      delete from ${t.ready} where ctid = any (
        case when (select careful from seen) = 0 then (select plain from seen)
        else (select plain from seen) || array(
          select place from (
            select place, care, free,
              row_number() over (partition by nth order by care desc, priority, seq) as nth_in_queue,
              row_number() over (partition by care order by priority, seq) as nth_of_care
            from picked join asked using (nth) where care > 0
          ) careful where nth_in_queue <= free and (care = 1 or nth_of_care = 1)
        ) end)
      returning queue, priority, seq, job_id, attempts, crashes, care
    ), ${leaseSteps(t, p.workerId, sql`cardinality(${p.queues}) > 1`)}`
}

/** `batch`, one row with all that was `taken`, and the lease of it, if anything was. */
export function leaseSteps(t: Objects, workerId: Placeholder, manyQueues: SqlFragment): SqlFragment {
  return sql`bounds as materialized (
      select array_agg(job_id) as ids, min(job_id) as first, max(job_id) as last from taken
    ), batch as materialized (
      select count(*) as size, array_agg(job_id) as ids, array_agg(seq) as seqs,
        array_agg((attempts + 1)::int2) as attempts, max(attempts) as most_attempts,
        array_agg(crashes) as crashes, max(crashes) as most_crashes,
        min(priority) as first_priority, max(priority) as last_priority, max(seq) as last_seq,
        json_agg(name)::text as names, json_agg(queue) filter (where ${manyQueues})::text as queues,
        array_agg(max_attempts)::text as max_attempts, array_agg(${milliseconds(sql`enqueued_at`)})::text as enqueued_ats,
        json_agg(input)::text as inputs,
        json_object_agg(job_id, json_build_array(care, unique_key is not null, ${milliseconds(sql`run_at`)}, tenant, context, has_checkpoint))
          filter (where care > 0 or unique_key is not null or run_at is not null or tenant <> '' or context is not null
            or has_checkpoint)::text as extras
      from (
        select taken.*, job.name, job.max_attempts, job.enqueued_at, job.run_at, job.unique_key, job.tenant, job.context, job.has_checkpoint, job.input
        from taken full join ${jobRows(t, sql`bounds`)} job on job.id = taken.job_id
        order by taken.care desc, taken.priority, taken.seq
      ) x
    ), leased as (
      insert into ${t.lease} (worker_id, job_ids, seqs, attempts, crashes)
      select ${workerId}, ids, seqs, case when most_attempts > 0 then attempts end, case when most_crashes > 0 then crashes end
      from batch where size > 0
      returning token
    )`
}

/** The columns of a claimed `batch`. */
export function batchAnswer(manyQueues: SqlFragment): SqlFragment {
  return sql`(select token from leased) as token, ids::text as ids, names, queues,
    case when most_attempts > 0 then attempts::text end as attempts, max_attempts, enqueued_ats, inputs, extras,
    case when size = 0 then null
      when not (${manyQueues}) and first_priority = last_priority
        then json_build_array(json_build_array(null, first_priority, last_seq::text))::text
      else (select json_agg(json_build_array(m.queue, m.priority, m.seq::text))::text
        from (select queue, priority, max(seq) as seq from taken group by queue, priority) m) end as marks`
}

/** What a claim answers: its `batch`, and what the look at the queues told. */
export function claimAnswer(p: Pick<ClaimPlaceholders, 'queues'>): SqlFragment {
  return sql`${batchAnswer(sql`cardinality(${p.queues}) > 1`)},
    coalesce((select max(horizon) from asked), 0) as horizon,
    pg_current_snapshot()::text as snapshot,
    (select size from seen) > size as passed_over,
    date_part('epoch', clock_timestamp() - statement_timestamp()) * 1000 as elapsed_ms`
}

/** No integer holds the infinity that somebody may have stored: it would make every claim fail. */
export function milliseconds(instant: SqlFragment): SqlFragment {
  return sql`case when isfinite(${instant}) then (date_part('epoch', ${instant}) * 1000)::int8 end`
}

/**
 * Claims due jobs of several queues, each up to its own limit, lowest priority number first, then in the order
 * of their places, under one new lease.
 *
 * The lease is the fence: its token was never given out before, and every later write by this worker must name
 * it. All jobs of the batch count as started from this commit on, so a worker that dies uses up an attempt of
 * each; it must therefore not ask for more than it will start within a moment. Jobs on their last attempt
 * (`care` 1) are taken only into free slots, and of jobs that have lost two workers (`care` 2) one at a time;
 * they come first in the batch.
 *
 * Locks rows of `ready`, each with `skip locked`: claims never wait for one another. A lost reply leaves a lease
 * that nobody works on; the worker hands it back when it finds it (`release-leases.ts`), or it is rescued.
 */
export const claimJobs = operation({
  name: 'claim_jobs',
  params: claimParams,
  columns: { ...claimColumns, ...lookColumns },
  text: (t, p) => sql`with ${claimSteps(t, p)}
    select ${claimAnswer(p)} from batch`,
})

export type ClaimRequest = Params<typeof claimJobs>
/** A claimed batch, by whichever statement. */
export type ClaimedBatch = Omit<Row<typeof claimJobs>, keyof typeof lookColumns>
/** A claim's answer. */
export type Look = Row<typeof claimJobs>

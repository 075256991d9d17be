import { operation, type Params, type Row } from '../../driver/operation.ts'
import { type Objects, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'
import { jobRow } from './probes.ts'

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

/** What a claim gives: the jobs column by column, in the order in which they are to start. */
export const claimColumns = {
  token: 'int8?',
  ids: 'json?',
  names: 'json?',
  queues: 'json?',
  attempts: 'json?',
  maxAttempts: 'json?',
  /**
   * Milliseconds since the epoch. As numeric: of a float `extra_float_digits` may leave one digit, and an integer
   * cannot hold the infinity that somebody may have stored, which would make every claim fail.
   */
  enqueuedAts: 'json?',
  inputs: 'json?',
  /** For jobs that have any of it: `[care, holds a unique key, run at in milliseconds, tenant, context]`. */
  extras: 'json?',
  /** `[queue, priority, highest seq]` for each class that was claimed from. */
  marks: 'json?',
} as const

/** What a look tells beside the jobs. */
export const lookColumns = {
  /** Every job that was visible before this place in the queue was looked at, if fewer came than were asked for. */
  horizon: 'int8',
  /** Jobs that need care were there, and were left for want of a free slot. */
  passedOver: 'bool',
  /** What the statement took on the server. */
  elapsedMs: 'float8',
} as const

export function lookAnswer(t: Objects): SqlFragment {
  return sql`(select last_value from ${t.job_seq}) as horizon,
    (select count(*) from picked) > (select count(*) from taken) as passed_over,
    date_part('epoch', clock_timestamp() - statement_timestamp()) * 1000 as elapsed_ms`
}

type ClaimPlaceholders = { readonly [K in keyof typeof claimParams]: Placeholder }

/**
 * The claim as a list of common table expressions, to be a statement of its own or to follow a settle.
 *
 * `ctid = any (array(…))` takes at most what was asked for under every plan: a locking subquery joined to the
 * delete may run once per outer row. The constant limit within is the most that a worker asks for (`MAX_BATCH`);
 * it tells the planner, which cannot know `wanted`, that few rows are read, and keeps it at the index's order. A row that was locked but is not taken is free again at commit.
 */
export function claimSteps(t: Objects, p: ClaimPlaceholders): SqlFragment {
  return sql`asked as materialized (
      select asked.* from unnest(${p.queues}, ${p.wanted}, ${p.free}) asked (queue, wanted, free)
      where not exists (select from ${t.queue} q where q.name = asked.queue and q.paused_at is not null)
    ), picked as materialized (
      select asked.queue, asked.free, r.* from asked cross join lateral (
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
    ), taken as (
      delete from ${t.ready} where ctid = any (array(
        select place from picked where care = 0
        union all
        select place from (
          select place, care, free,
            row_number() over (partition by queue order by care desc, priority, seq) as nth_in_queue,
            row_number() over (partition by care order by priority, seq) as nth_of_care
          from picked where care > 0
        ) careful where nth_in_queue <= free and (care = 1 or nth_of_care = 1)
      ))
      returning queue, priority, seq, job_id, attempts, crashes, care
    ), ${leaseStep(t, p.workerId)}`
}

/** The lease of what was `taken`, if anything was. */
export function leaseStep(t: Objects, workerId: Placeholder): SqlFragment {
  return sql`leased as (
      insert into ${t.lease} (worker_id, job_ids, seqs, attempts, crashes)
      select ${workerId}, array_agg(job_id), array_agg(seq),
        case when max(attempts) > 0 then array_agg((attempts + 1)::int2) end, case when max(crashes) > 0 then array_agg(crashes) end
      from taken having count(*) > 0
      returning token
    )`
}

/**
 * One row for a batch of `taken` jobs under the lease `leased`; no row if nothing was taken. Column by column:
 * measured, an array of 400 values costs PostgreSQL and Node half of 400 rows or 400 small arrays
 * (docs/decisions/0002-storage-and-fences.md). A job whose row is gone comes with a null name.
 */
export function claimedBatch(t: Objects): SqlFragment {
  return sql`select leased.token, batch.*,
      (select json_agg(json_build_array(m.queue, m.priority, m.seq::text))::text
        from (select queue, priority, max(seq) as seq from taken group by queue, priority) m) as marks
    from leased cross join lateral (
      select json_agg(x.job_id::text)::text as ids, json_agg(x.name)::text as names, json_agg(x.queue)::text as queues,
        json_agg(x.attempts + 1)::text as attempts, json_agg(x.max_attempts)::text as max_attempts,
        json_agg((date_part('epoch', x.enqueued_at) * 1000)::numeric)::text as enqueued_ats, json_agg(x.input)::text as inputs,
        json_agg(case when x.care > 0 or x.unique_key is not null or x.run_at is not null or x.tenant <> '' or x.context is not null
          then json_build_array(x.care, x.unique_key is not null, (date_part('epoch', x.run_at) * 1000)::numeric, x.tenant, x.context) end)::text as extras
      from (
        select taken.job_id, taken.queue, taken.attempts, taken.care, job.name, job.max_attempts, job.enqueued_at, job.run_at,
          job.unique_key, job.tenant, job.context, job.input
        from taken left join lateral ${jobRow(t, sql`taken.job_id`)} job on true
        order by taken.care desc, taken.priority, taken.seq
      ) x
    ) batch`
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
    select batch.*, ${lookAnswer(t)} from (select 1) one left join (${claimedBatch(t)}) batch on true`,
})

export type ClaimRequest = Params<typeof claimJobs>
/** A claimed batch, by whichever statement. */
export type ClaimedBatch = Omit<Row<typeof claimJobs>, keyof typeof lookColumns>
/** A claim's answer. */
export type Look = Row<typeof claimJobs>

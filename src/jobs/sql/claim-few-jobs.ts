import { operation, type Row } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { milliseconds } from './claim-jobs.ts'
import { jobRow } from './probes.ts'

/**
 * {@link claimJobs} for the first look of a worker that slept: a few jobs of one queue, no more than slots are free, by a
 * statement that starts in half the time, which is most of what such a look takes. Leaves out jobs that have cost two
 * workers their life, and tells if some are there.
 *
 * One row for each job, with its place in the lease; one row without a token if there is none.
 */
export const claimFewJobs = operation({
  name: 'claim_few_jobs',
  params: { workerId: 'int8', queue: 'text', limit: 'int4' },
  columns: {
    token: 'int8?',
    place: 'int4?',
    jobId: 'text?',
    attempt: 'int4?',
    care: 'int4?',
    name: 'text?',
    maxAttempts: 'int4?',
    tenant: 'text?',
    keyed: 'bool?',
    hasCheckpoint: 'bool?',
    enqueuedAt: 'int8?',
    runAt: 'int8?',
    context: 'json?',
    input: 'json?',
    /** Jobs that have cost two workers their life were left. */
    suspects: 'bool?',
  },
  text: (t, p) => sql`with taken as (
      delete from ${t.ready} where ctid = any (array(
        select ctid from ${t.ready} r
        where r.queue = ${p.queue} and r.care < 2 and (select paused_at from ${t.queue} q where q.name = ${p.queue}) is null
        order by r.priority, r.seq limit ${p.limit} for update skip locked
      ))
      returning seq, job_id, priority, attempts, crashes, care
    ), ordered as materialized (
      select * from taken order by care desc, priority, seq
    ), leased as (
      insert into ${t.lease} (worker_id, job_ids, seqs, attempts, crashes)
      select ${p.workerId}, array_agg(job_id), array_agg(seq), array_agg((attempts + 1)::int2), array_agg(crashes)
      from ordered having count(*) > 0
      returning token, job_ids
    )
    select leased.token, array_position(leased.job_ids, ordered.job_id) as place, ordered.job_id::text as job_id, (ordered.attempts + 1)::int4 as attempt, ordered.care::int4 as care,
      job.name, job.max_attempts::int4 as max_attempts, job.tenant, job.unique_key is not null as keyed, job.has_checkpoint,
      ${milliseconds(sql`job.enqueued_at`)} as enqueued_at, ${milliseconds(sql`job.run_at`)} as run_at,
      job.context::text as context, job.input::text as input,
      case when (select count(*) from ordered) < ${p.limit}
        then (select true from ${t.ready} r where r.queue = ${p.queue} and r.care = 2 limit 1) end as suspects
    from (select 1) one
    left join (leased cross join ordered left join lateral ${jobRow(t, sql`ordered.job_id`)} job on true) on true`,
})

export type FewJobs = Row<typeof claimFewJobs>

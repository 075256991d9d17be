import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Deletes up to `limit` jobs that ended in `state` at least `olderThanMs` ago, with their attempts and outcomes, by
 * ascending id above `after`. Continue with `last`; null: nothing is left.
 *
 * Jobs with a row under a lease that is still open are passed over: that lease needs the row to know that the job
 * is settled. `skip locked` passes over a job that is being retried. A repetition deletes the next ones.
 */
export const pruneJobRows = operation({
  name: 'prune_jobs',
  params: { state: 'text', olderThanMs: 'float8', after: 'int8', limit: 'int4' },
  columns: { pruned: 'int4', last: 'int8?' },
  text: (t, p) => sql`with chosen as materialized (
      select job_id from ${t.outcome} o
      where o.job_id > ${p.after} and o.state = ${p.state}::${t.job_state}
        and o.finished_at <= clock_timestamp() - ${p.olderThanMs} * interval '1 millisecond'
        and not exists (select from ${t.lease} l where l.token = o.token)
        and not exists (select from ${t.attempt} a join ${t.lease} l on l.token = a.token where a.job_id = o.job_id)
      order by job_id limit ${p.limit} for update of o skip locked
    ), outcomes as (
      delete from ${t.outcome} where job_id in (select job_id from chosen)
    ), attempts as (
      delete from ${t.attempt} where job_id in (select job_id from chosen)
    ), jobs as (
      delete from ${t.job} where id in (select job_id from chosen)
    )
    select count(*)::int4 as pruned, max(job_id) as last from chosen`,
})

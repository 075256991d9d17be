import { type Objects, type SqlFragment, sql } from '../../driver/sql.ts'

/*
 * Look-ups by key that stay look-ups. Written as `exists` or a plain join, the planner may turn them into a hash
 * join over the whole table, and does when its statistics were taken while the table was small: a claim then reads
 * the backlog, a settle the history. A scalar or lateral subquery with a limit runs once per row, by its index.
 * `token + 0`: an attempt is looked up by its job. By its token, the index would give all jobs of the lease.
 */

/** True if the job has ended. */
export function hasEnded(t: Objects, job: SqlFragment): SqlFragment {
  return sql`((select true from ${t.outcome} o where o.job_id = ${job} limit 1) is true)`
}

/** True if the attempt under this token has left a row and the job goes on. */
export function hasAttempt(t: Objects, job: SqlFragment, token: SqlFragment): SqlFragment {
  return sql`((select true from ${t.attempt} a where a.job_id = ${job} and a.token + 0 = ${token} limit 1) is true)`
}

/** The job's row as a lateral item: join it `on true`. */
export function jobRow(t: Objects, job: SqlFragment): SqlFragment {
  return sql`(select * from ${t.job} j where j.id = ${job} limit 1)`
}

/**
 * The rows of many jobs by one scan of the index: a look-up for each costs twice as much. `bounds` is one row with the
 * `ids`, the `first` and the `last`, which leave out the partitions that hold none of them. To be joined by `full join`:
 * that cannot become a nested loop over two sets whose sizes the planner does not know.
 */
export function jobRows(t: Objects, bounds: SqlFragment): SqlFragment {
  return sql`(select * from ${t.job} j where j.id = any ((select ids from ${bounds})::bigint[])
    and j.id between (select first from ${bounds}) and (select last from ${bounds}))`
}

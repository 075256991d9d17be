import { type Objects, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'

/** What names an attempt in a statement: the life of its worker, its lease, its job, and the job's place in the lease. */
export const attemptParams = { workerId: 'int8', token: 'int8', jobId: 'int8', place: 'int4' } as const

export type AttemptPlaceholders = { readonly [K in keyof typeof attemptParams]: Placeholder }

/**
 * `fence`: one row while the attempt may write, none once its lease is another's, or its end is recorded. `cancelled`
 * says that somebody cancelled the job meanwhile.
 *
 * FOR KEY SHARE, to the end of the transaction: jobs of one batch do not wait for each other, nor do settles or cancels;
 * a rescue passes the lease over until then. `worker_id + 0` as in `fenceStep`.
 */
export function attemptFence(t: Objects, p: AttemptPlaceholders): SqlFragment {
  return sql`fence as materialized (
      select l.token, ${p.jobId} = any (l.cancelled) as cancelled from ${t.lease} l
      where l.token = ${p.token} and l.worker_id + 0 = ${p.workerId} and l.job_ids[${p.place}] = ${p.jobId}
        and not ${isSettled(t, sql`${p.jobId}`, sql`${p.token}`)}
      for key share of l
    )`
}

/** What {@link attemptFence} tells of the attempt. */
export const fenceColumns = { live: 'bool', cancelled: 'bool' } as const

/** The columns of {@link fenceColumns}. */
export function fenceAnswer(): SqlFragment {
  return sql`exists (select from fence) as live, coalesce((select cancelled from fence), false) as cancelled`
}

/**
 * True if the attempt under this token is settled: by an outcome or an attempt row that carries it. Look-ups that stay
 * look-ups, as in `jobs/sql/probes.ts`.
 */
export function isSettled(t: Objects, job: SqlFragment, token: SqlFragment): SqlFragment {
  return sql`((select true from ${t.outcome} o where o.job_id = ${job} and o.token = ${token} limit 1) is true
    or (select true from ${t.attempt} a where a.job_id = ${job} and a.token + 0 = ${token} limit 1) is true)`
}

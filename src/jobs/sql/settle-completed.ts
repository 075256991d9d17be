import { operation, type Params, type Row } from '../../driver/operation.ts'
import { type Objects, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'
import { claimAnswer, claimColumns, claimParams, claimSteps, lookColumns } from './claim-jobs.ts'

const settleParams = {
  workerId: 'int8',
  /** The leases that the jobs below belong to. */
  tokens: 'int8[]',
  jobIds: 'int8[]',
  /** For each job, which of the leases it is of, and its place there; both from 1. */
  leases: 'int4[]',
  places: 'int4[]',
  durationsMs: 'int4[]',
  /** JSON text of each result; empty when no job gave one. */
  results: 'text[]',
  /** Those of the jobs that hold a unique key. */
  keyedIds: 'int8[]',
} as const

type SettlePlaceholders = { readonly [K in keyof typeof settleParams]: Placeholder }

/**
 * `fence` locks the leases that are still this worker's, in one order. FOR SHARE waits for a cancel or a rescue that
 * holds the row and then sees what it wrote, while fenced transactions of the same batch (FOR KEY SHARE) go on
 * beside it. `worker_id + 0`: by the worker's index it would walk over all leases that the worker ever had, for as long
 * as an old snapshot keeps them.
 */
export function fenceStep(t: Objects, p: { workerId: Placeholder; tokens: Placeholder }): SqlFragment {
  return sql`fence as materialized (
      select token, array_position(${p.tokens}, token) as nth, job_ids, seqs, attempts, crashes, cancelled, cancel_reasons
      from ${t.lease} where token = any (${p.tokens}) and worker_id + 0 = ${p.workerId} order by token for share
    )`
}

/** Why a job was cancelled while it ran, from a row with the lease's marks; null if it was not. */
export function cancelReason(job: SqlFragment, lease: SqlFragment): SqlFragment {
  return sql`case when ${job} = any (${lease}.cancelled)
      then coalesce(${lease}.cancel_reasons[array_position(${lease}.cancelled, ${job})], 'cancelled while it ran') end`
}

/**
 * Deletes the leases that were settled whole, by `tally`: how many jobs of each `token` were. Which of the others have
 * nothing left, the worker knows, and `closeLeases` makes sure. Passes over one that a transaction still holds by its
 * key: an abandoned handler's may stay open for long, and must not keep the worker's one traffic waiting.
 */
export function closeStep(t: Objects, tally: SqlFragment): SqlFragment {
  return sql`closed as (
      delete from ${t.lease} where token = any (array(
        select l.token from ${t.lease} l where l.token = any (array(
          select fence.token from fence join ${tally} tally using (token) where cardinality(fence.job_ids) = tally.jobs
        )) order by l.token for update skip locked
      )) returning token
    )`
}

function settleSteps(t: Objects, p: SettlePlaceholders): SqlFragment {
  return sql`${fenceStep(t, p)}, ended as (
      insert into ${t.outcome} (job_id, token, finished_at, duration_ms, attempts, state, reason, result)
      select given.job_id, fence.token, statement_timestamp(), given.duration_ms, coalesce(fence.attempts[given.place], 1),
        case when given.job_id = any (fence.cancelled) then 'cancelled'::${t.job_state} else 'completed'::${t.job_state} end,
        ${cancelReason(sql`given.job_id`, sql`fence`)}, case when given.job_id <> all (fence.cancelled) then given.result::json end
      from unnest(${p.jobIds}, ${p.leases}, ${p.places}, ${p.durationsMs}, ${p.results}) given (job_id, lease, place, duration_ms, result)
      join fence on fence.nth = given.lease and fence.job_ids[given.place] = given.job_id
      where (given.job_id, fence.token) not in (select job_id, token from ${t.attempt} where token = any (${p.tokens}))
      returning job_id, token, state
    ), tally as materialized (
      select token, count(*) as jobs, count(*) filter (where state = 'cancelled') as cancelled from ended group by token
    ), freed as (
      delete from ${t.unique_key} where job_id = any (
        case when cardinality(${p.keyedIds}) > 0 then array(select job_id from ended where job_id = any (${p.keyedIds})) end)
    ), ${closeStep(t, sql`tally`)}`
}

const settledColumns = {
  /** Jobs that were not this worker's any more, as a JSON array of ids: the write was refused. */
  refused: 'json?',
  /** Jobs that had been cancelled before they completed. */
  cancelled: 'json?',
  /** Leases that ended with this. */
  closed: 'int8[]?',
} as const

function settledAnswer(p: SettlePlaceholders): SqlFragment {
  return sql`case when (select coalesce(sum(jobs), 0) from tally) < cardinality(${p.jobIds}) then (
        select json_agg(job_id::text)::text from (select unnest(${p.jobIds}) as job_id except select job_id from ended) refused
      ) end as refused,
      case when (select sum(cancelled) from tally) > 0 then (
        select json_agg(job_id::text)::text from ended where state = 'cancelled'
      ) end as cancelled,
      (select array_agg(token)::text from closed) as closed`
}

/**
 * Records jobs as completed, if their leases are still this worker's; releases their unique keys; ends leases
 * that it settles whole. A job that was cancelled while it ran ends cancelled.
 *
 * One conditional statement for the whole batch: a job that is gone or went to another worker is refused, and
 * the others are recorded. Locks the leases FOR SHARE in token order, then inserts.
 *
 * The hot path does not look for earlier outcomes: one that is there, from a statement whose answer was lost,
 * fails this one as a duplicate key (23505), nothing changed. Then send the batch by `settleAttempts`, which looks.
 */
export const settleCompleted = operation({
  name: 'settle_completed',
  params: settleParams,
  columns: settledColumns,
  text: (t, p) => sql`with ${settleSteps(t, p)} select ${settledAnswer(p)}`,
})

/** {@link settleCompleted} and the next claim in one statement: one round trip, one commit. */
export const settleAndClaim = operation({
  name: 'settle_and_claim',
  params: { ...settleParams, ...claimParams },
  columns: { ...settledColumns, ...claimColumns, ...lookColumns },
  text: (t, p) => sql`with ${settleSteps(t, p)}, ${claimSteps(t, p)}
    select ${settledAnswer(p)}, ${claimAnswer(p)} from batch`,
})

export type SettleRequest = Params<typeof settleCompleted>
export type Settled = Row<typeof settleCompleted>

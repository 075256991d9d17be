import { operation, type Params, type Row } from '../../driver/operation.ts'
import { type Objects, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'
import { claimColumns, claimedBatch, claimParams, claimSteps, lookAnswer, lookColumns } from './claim-jobs.ts'
import { isSettled } from './probes.ts'

const settleParams = {
  workerId: 'int8',
  /** The leases that the jobs below belong to. */
  tokens: 'int8[]',
  jobIds: 'int8[]',
  /** The lease of each job. */
  jobTokens: 'int8[]',
  durationsMs: 'int4[]',
  /** JSON text of each result; empty when no job gave one. */
  results: 'text[]',
  /** Those of the jobs that hold a unique key. */
  keyedIds: 'int8[]',
} as const

type SettlePlaceholders = { readonly [K in keyof typeof settleParams]: Placeholder }

/**
 * `fence` locks the leases that are still this worker's, in one order, and `held` is what they stand for. FOR
 * SHARE waits for a cancel or a rescue that holds the row and then sees what it wrote, while fenced transactions
 * of the same batch (FOR KEY SHARE) go on beside it.
 */
export function fenceSteps(t: Objects, p: { workerId: Placeholder; tokens: Placeholder }): SqlFragment {
  return sql`fence as materialized (
      select token, claimed_at, job_ids, seqs, attempts, crashes, cancelled, cancel_reasons from ${t.lease}
      where token = any (${p.tokens}) and worker_id = ${p.workerId} order by token for share
    ), held as materialized (
      select fence.token, fence.cancelled, fence.cancel_reasons, h.job_id, h.seq, coalesce(h.attempt, 1::int2) as attempt, coalesce(h.crashes, 0::int2) as crashes
      from fence cross join lateral unnest(job_ids, seqs, attempts, crashes) h (job_id, seq, attempt, crashes)
    )`
}

/** Why a job was cancelled while it ran, from a row with the lease's marks; null if it was not. */
export function cancelReason(job: SqlFragment, lease: SqlFragment): SqlFragment {
  return sql`case when ${job} = any (${lease}.cancelled)
      then coalesce(${lease}.cancel_reasons[array_position(${lease}.cancelled, ${job})], 'cancelled while it ran') end`
}

/**
 * Deletes the leases of which every job is settled: by the rows of `mine` just now, or by an earlier statement,
 * which left an outcome or an attempt with the lease's token. Mostly a whole lease is settled at once, which
 * counting tells. `except`, because an anti-join of two steps whose sizes the planner cannot know becomes a
 * nested loop over both.
 */
export function closeSteps(t: Objects, settled = sql`select token, job_id from mine`): SqlFragment {
  return sql`part as materialized (
      select fence.token from fence
      where cardinality(job_ids) > (select count(*) from mine where mine.token = fence.token)
    ), rest as materialized (
      select held.token, held.job_id from held where token in (select token from part)
      except (${settled})
    ), unsettled as materialized (
      select token from rest
      where not ${isSettled(t, sql`rest.job_id`, sql`rest.token`)}
    ), closed as (
      delete from ${t.lease} where token = any (array(select token from fence except select token from unsettled))
    )`
}

function settleSteps(t: Objects, p: SettlePlaceholders): SqlFragment {
  return sql`${fenceSteps(t, p)}, given as materialized (
      select g.* from unnest(${p.jobIds}, ${p.jobTokens}, ${p.durationsMs}, ${p.results}) g (job_id, token, duration_ms, result)
    ), before as materialized (
      select job_id, token from ${t.attempt} where token = any (${p.tokens})
    ), mine as materialized (
      select given.*, held.attempt, given.job_id = any (held.cancelled) as was_cancelled,
        ${cancelReason(sql`given.job_id`, sql`held`)} as cancel_reason
      from given join held using (token, job_id)
      where (given.job_id, given.token) not in (select job_id, token from before)
    ), ended as (
      insert into ${t.outcome} (job_id, token, finished_at, duration_ms, attempts, state, reason, result)
      select job_id, token, statement_timestamp(), duration_ms, attempt,
        case when was_cancelled then 'cancelled'::${t.job_state} else 'completed'::${t.job_state} end,
        cancel_reason, case when not was_cancelled then result::json end
      from mine
      returning job_id, state
    ), freed as (
      delete from ${t.unique_key} where job_id = any (${p.keyedIds}) and job_id in (select job_id from ended)
    ), ${closeSteps(t)}`
}

const settledColumns = {
  /** Jobs that were not this worker's any more, as a JSON array of ids: the write was refused. */
  refused: 'json?',
  /** Jobs that had been cancelled before they completed. */
  cancelled: 'json?',
} as const

function settledAnswer(): SqlFragment {
  return sql`case when (select count(*) from ended) < (select count(*) from given) then (
        select json_agg(job_id::text)::text from (select job_id from given except select job_id from ended) r
      ) end as refused,
      (select json_agg(e.job_id::text)::text from ended e where e.state = 'cancelled') as cancelled`
}

/**
 * Records jobs as completed, if their leases are still this worker's; releases their unique keys; ends leases
 * of which nothing is left. A job that was cancelled while it ran ends cancelled.
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
  text: (t, p) => sql`with ${settleSteps(t, p)} select ${settledAnswer()}`,
})

/** {@link settleCompleted} and the next claim in one statement: one round trip, one commit. */
export const settleAndClaim = operation({
  name: 'settle_and_claim',
  params: { ...settleParams, ...claimParams },
  columns: { ...settledColumns, ...claimColumns, ...lookColumns },
  text: (t, p) => sql`with ${settleSteps(t, p)}, ${claimSteps(t, p)}
    select batch.*, ${settledAnswer()}, ${lookAnswer(t)} from (select 1) one left join (${claimedBatch(t)}) batch on true`,
})

export type SettleRequest = Params<typeof settleCompleted>
export type Settled = Row<typeof settleCompleted>

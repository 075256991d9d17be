import { operation, type Params } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { tellPlaces } from './came-back.ts'
import { hasAttempt, hasEnded, jobRow } from './probes.ts'
import { cancelReason, closeStep, fenceStep } from './settle-completed.ts'

/** One item of the `items` array, in the short names of the statement. */
export interface AttemptItem {
  readonly token: string
  readonly job: string
  /** What becomes of the job. `ready` keeps its place and gives the attempt back; `parked` waits for another worker. */
  readonly to: 'completed' | 'discarded' | 'cancelled' | 'scheduled' | 'ready' | 'parked'
  /** How the attempt ended, where the job goes on. */
  readonly ended?: 'failed' | 'timed-out' | 'snoozed' | 'handed-back' | 'interrupted' | 'parked'
  readonly ms?: number
  readonly delay?: number
  readonly reason?: string
  readonly late?: boolean
  readonly contract?: string | null
  readonly error?: unknown
  readonly result?: unknown
}

/**
 * Records the ends of attempts that did not simply complete, if their leases are still this worker's.
 *
 * Each leaves exactly one row with its token: an outcome where the job has ended, else an attempt; the fence
 * relies on that. `failed` and `timed-out` keep the attempt counted; `snoozed`, `handed-back`, `interrupted` and
 * `parked` give it back. Cancel wins: a job that was cancelled while it ran ends cancelled whatever came of it.
 * History is cut to the `keep` newest errors and as many other ends, except rows that a live lease still needs as
 * its fence.
 *
 * Locks leases FOR SHARE in token order, then inserts. Repeating it changes nothing; `refused` names only what
 * no statement of this claim has recorded.
 */
export const settleAttempts = operation({
  name: 'settle_attempts',
  params: { workerId: 'int8', tokens: 'int8[]', items: 'json', keep: 'int4' },
  columns: { refused: 'json?', cancelled: 'json?', closed: 'int8[]?' },
  text: (t, p) => sql`with ${fenceStep(t, p)}, held as materialized (
      select fence.token, fence.cancelled, fence.cancel_reasons, h.job_id, h.seq, coalesce(h.attempt, 1::int2) as attempt,
        coalesce(h.crashes, 0::int2) as crashes
      from fence cross join lateral unnest(job_ids, seqs, attempts, crashes) h (job_id, seq, attempt, crashes)
    ), given as materialized (
      select distinct on (token, job) g.* from json_to_recordset(${p.items}) as g (token bigint, job bigint, "to" text, ended text, ms integer,
        delay float8, reason text, late boolean, contract text, error json, result json)
    ), open as materialized (
      select g.* from given g where not ${hasAttempt(t, sql`g.job`, sql`g.token`)} and not ${hasEnded(t, sql`g.job`)}
    ), mine as materialized (
      select held.token, held.job_id, held.seq, held.attempt, held.crashes, j.queue, j.priority, j.name, j.max_attempts,
        g.ended, g.ms, g.delay, g.reason, g.late, g.contract, g.error, g.result,
        case when g.job = any (held.cancelled) then 'cancelled' else g."to" end as goes,
        g.job = any (held.cancelled) as was_cancelled, ${cancelReason(sql`g.job`, sql`held`)} as cancel_reason,
        held.attempt - case when g.ended in ('snoozed', 'handed-back', 'interrupted', 'parked') then 1 else 0 end as counted
      from open g join held on held.token = g.token and held.job_id = g.job
      join lateral ${jobRow(t, sql`g.job`)} j on true
    ), ended as (
      insert into ${t.outcome} (job_id, token, finished_at, duration_ms, attempts, late, state, reason, result, error)
      select job_id, token, clock_timestamp(), ms, counted, coalesce(late, false), goes::${t.job_state},
        coalesce(cancel_reason, reason),
        case when goes = 'completed' then result end, error
      from mine where goes in ('completed', 'discarded', 'cancelled')
      on conflict (job_id) do nothing
      returning job_id
    ), noted as (
      insert into ${t.attempt} (job_id, token, ended_at, worker_id, duration_ms, attempt, ended, error)
      select job_id, token, clock_timestamp(), ${p.workerId}, ms, attempt, ended::${t.attempt_end}, error
      from mine where goes in ('scheduled', 'ready', 'parked')
      returning job_id
    ), later as (
      insert into ${t.scheduled} (run_at, job_id, priority, attempts, crashes, retrying, queue)
      select clock_timestamp() + delay * interval '1 millisecond', job_id, priority, counted,
        case when ended = 'snoozed' then crashes else 0 end, ended <> 'snoozed', queue
      from mine where goes = 'scheduled'
    ), back as (
      insert into ${t.ready} (seq, job_id, priority, attempts, crashes, care, queue)
      select seq, job_id, priority, counted, crashes,
        case when crashes >= 2 then 2 when counted + 1 >= max_attempts then 1 else 0 end, queue
      from mine where goes = 'ready'
    ), aside as (
      insert into ${t.parked} (job_id, seq, parked_at, priority, attempts, crashes, name, queue, refused_contract, reason)
      select job_id, seq, clock_timestamp(), priority, counted, crashes, name, queue, contract, reason
      from mine where goes = 'parked'
    ), freed as (
      delete from ${t.unique_key} where job_id = any (array(select job_id from ended))
    ), overfull as materialized (
      -- Snoozes and hand-backs, of which there may be any number, do not push out errors.
      select job_id, is_error, oldest from (
        select mine.job_id, kind.is_error, (
          select a.token from ${t.attempt} a where a.job_id = mine.job_id and (a.error is not null) = kind.is_error
          order by a.token + 0 desc offset ${p.keep} - 1 limit 1
        ) as oldest from mine cross join (values (true), (false)) kind (is_error)
      ) m where oldest is not null
    ), cut as (
      delete from ${t.attempt} old where old.job_id = any (array(select job_id from overfull))
        and old.token <= (select oldest from overfull f
          where f.job_id = old.job_id and f.is_error = (old.error is not null) limit 1)
        and (select true from ${t.lease} l where l.token = old.token limit 1) is null
    ), tally as materialized (
      -- Of a job whose row is gone nothing can be recorded, and nothing is left.
      select token, count(*) as jobs from (
        select token from mine
        union all
        select gone.token from (
          select given.token, given.job from given left join lateral ${jobRow(t, sql`given.job`)} j on true where j.id is null
        ) gone join held on held.token = gone.token and held.job_id = gone.job
      ) settled group by token
    ), ${closeStep(t, sql`tally`)}
    select
      (select json_agg(g.job::text)::text from given g
        where g.job not in (select job_id from ended union all select job_id from noted)
          and (select true from ${t.outcome} o where o.job_id = g.job and o.token = g.token
            and o.reason is distinct from 'worker lost on the last attempt' limit 1) is null
          and (select true from ${t.attempt} a where a.job_id = g.job and a.token = g.token and a.ended::text = g.ended
            limit 1) is null) as refused,
      (select json_agg(c.job_id::text)::text from (
        select job_id from mine where was_cancelled
        union all
        select g.job from given g where g."to" <> 'cancelled'
          and (select o.state from ${t.outcome} o where o.job_id = g.job and o.token = g.token limit 1) = 'cancelled'
      ) c) as cancelled,
      (select array_agg(token)::text from closed) as closed,
      (select ${t.announce}(array_agg(distinct queue)) from mine where goes = 'ready') as announced,
      ${tellPlaces(sql`mine where goes = 'ready'`)} as told`,
})

export type SettleAttemptsRequest = Params<typeof settleAttempts>

import { operation, type Row } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { tellPlaces } from './came-back.ts'
import { hasAttempt, hasEnded, jobRow } from './probes.ts'
import { cancelReason } from './settle-completed.ts'

/**
 * Second half of a rescue, in the same transaction but in a statement, and so a snapshot, of its own: one that
 * waited for a settle with its old snapshot would requeue what that settle had just recorded.
 *
 * Each job of the leases that has no outcome or attempt with the lease's token was executing, or about to. Its
 * attempt is used up: it is noted as `worker-lost`, and the job goes back to its place in the queue; after its
 * second crash in a row it waits, longer each time (`backoffMs` doubled, at most an hour); on its last attempt
 * it is discarded; if it was cancelled, it ends cancelled. Leases are then deleted, and the
 * workers too, even one with leases left: it is dead with all that it holds, and a lease without its worker is lost.
 *
 * `orphans` counts ids whose job row is gone. Inserts by job in token order. It runs once, in its transaction.
 */
export const requeueLostLeases = operation({
  name: 'requeue_lost_leases',
  params: { tokens: 'int8[]', workerIds: 'int8[]', backoffMs: 'int8' },
  columns: { requeued: 'json?', discarded: 'json?', cancelled: 'json?', orphans: 'int4' },
  text: (t, p) => sql`with lost as materialized (
      select lease.token, lease.worker_id, lease.claimed_at, h.job_id, h.seq,
        coalesce(h.attempt, 1::int2) as attempt, coalesce(h.crashes, 0::int2) as crashes,
        h.job_id = any (lease.cancelled) as was_cancelled, ${cancelReason(sql`h.job_id`, sql`lease`)} as cancel_reason
      from ${t.lease} lease cross join lateral unnest(job_ids, seqs, attempts, crashes) h (job_id, seq, attempt, crashes)
      where lease.token = any (${p.tokens})
        and not ${hasEnded(t, sql`h.job_id`)} and not ${hasAttempt(t, sql`h.job_id`, sql`lease.token`)}
    ), fate as materialized (
      select lost.*, job.queue, job.priority, job.max_attempts, lost.crashes + 1 as now_crashes,
        case when lost.was_cancelled then 'cancelled' when lost.attempt >= job.max_attempts then 'discarded'
          when lost.crashes = 0 then 'ready' else 'scheduled' end as goes,
        json_build_object('name', 'WorkerLostError', 'code', 'WORKER_LOST', 'message',
          format('worker %s stopped renewing its lease while this attempt may have been running; what the attempt did is unknown',
            lost.worker_id)) as error
      from lost join lateral ${jobRow(t, sql`lost.job_id`)} job on true
    ), ended as (
      insert into ${t.outcome} (job_id, token, finished_at, attempts, state, reason, error)
      select job_id, token, clock_timestamp(), attempt, goes::${t.job_state},
        coalesce(cancel_reason, 'worker lost on the last attempt'), error
      from fate where goes in ('discarded', 'cancelled')
      on conflict (job_id) do nothing
      returning job_id
    ), noted as (
      insert into ${t.attempt} (job_id, token, ended_at, worker_id, duration_ms, attempt, ended, error)
      select job_id, token, clock_timestamp(), worker_id,
        least(extract(epoch from clock_timestamp() - claimed_at) * 1000, 2147483647)::int4, attempt, 'worker-lost', error
      from fate where goes in ('ready', 'scheduled')
    ), back as (
      insert into ${t.ready} (seq, job_id, priority, attempts, crashes, care, queue)
      select seq, job_id, priority, attempt, now_crashes, case when attempt + 1 >= max_attempts then 1 else 0 end, queue
      from fate where goes = 'ready'
    ), later as (
      insert into ${t.scheduled} (run_at, job_id, priority, attempts, crashes, retrying, queue)
      select clock_timestamp() + least(${p.backoffMs} * 2 ^ least(crashes - 1, 30), 3600000) * interval '1 millisecond',
        job_id, priority, attempt, now_crashes, true, queue
      from fate where goes = 'scheduled'
    ), freed as (
      delete from ${t.unique_key} where job_id = any (array(select job_id from ended))
    ), closed as (
      delete from ${t.lease} where token = any (${p.tokens}) returning token
    ), buried as (
      delete from ${t.worker} where id = any (${p.workerIds}) returning id
    ), silenced as (
      delete from ${t.waiter} where worker_id in (select id from buried)
    )
    select (select json_agg(json_build_array(job_id::text, queue, attempt, worker_id::text))::text from fate where goes in ('ready', 'scheduled')) as requeued,
      (select json_agg(json_build_array(job_id::text, queue, attempt, worker_id::text))::text from fate where goes = 'discarded') as discarded,
      (select json_agg(job_id::text)::text from fate where goes = 'cancelled') as cancelled,
      (select count(*)::int4 from lost) - (select count(*)::int4 from fate) as orphans,
      (select ${t.announce}(array_agg(distinct queue)) from fate where goes = 'ready') as announced,
      ${tellPlaces(sql`fate where goes = 'ready'`)} as told`,
})

export type Rescued = Row<typeof requeueLostLeases>

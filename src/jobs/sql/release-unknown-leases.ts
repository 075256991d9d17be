import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { tellPlaces } from './came-back.ts'
import { hasAttempt, hasEnded, jobRow } from './probes.ts'
import { cancelReason } from './settle-completed.ts'

/**
 * Puts back the jobs of this worker's leases that it does not know of: a claim whose answer was lost. None of
 * them has started, so no attempt is used and each keeps its place. Locks the leases, in token order. To be
 * called while no claim of the worker is under way. Safe to repeat.
 */
export const releaseUnknownLeases = operation({
  name: 'release_unknown_leases',
  params: { workerId: 'int8', known: 'int8[]' },
  columns: { released: 'int4' },
  repeatable: true,
  text: (t, p) => sql`with unknown as materialized (
      select * from ${t.lease} where worker_id = ${p.workerId} and token <> all (${p.known}) order by token for update
    ), held as materialized (
      select unknown.token, h.job_id, h.seq, coalesce(h.attempt, 1::int2) as attempt,
        coalesce(h.crashes, 0::int2) as crashes, h.job_id = any (unknown.cancelled) as was_cancelled,
        ${cancelReason(sql`h.job_id`, sql`unknown`)} as cancel_reason
      from unknown cross join lateral unnest(job_ids, seqs, attempts, crashes) h (job_id, seq, attempt, crashes)
      where not ${hasEnded(t, sql`h.job_id`)} and not ${hasAttempt(t, sql`h.job_id`, sql`unknown.token`)}
    ), back as (
      insert into ${t.ready} (seq, job_id, priority, attempts, crashes, care, queue)
      select held.seq, held.job_id, job.priority, held.attempt - 1, held.crashes,
        case when held.crashes >= 2 then 2 when held.attempt >= job.max_attempts then 1 else 0 end, job.queue
      from held join lateral ${jobRow(t, sql`held.job_id`)} job on true where not was_cancelled
      returning queue, priority, seq
    ), ended as (
      insert into ${t.outcome} (job_id, token, finished_at, attempts, state, reason)
      select job_id, token, clock_timestamp(), attempt - 1, 'cancelled', cancel_reason from held where was_cancelled
      returning job_id
    ), freed as (
      delete from ${t.unique_key} where job_id = any (array(select job_id from ended))
    ), closed as (
      delete from ${t.lease} where token = any (array(select token from unknown))
    )
    select (select count(*)::int4 from held) as released,
      (select ${t.announce}(array_agg(distinct queue)) from back) as announced,
      ${tellPlaces(sql`back`)} as told`,
})

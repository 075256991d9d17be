import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Last step of a retry: a discarded or cancelled job becomes ready again, behind what is ready now.
 *
 * Its outcome moves to `attempt` under the same token, so the history stays, and the lease of that attempt, if
 * other jobs keep it open, still finds the job settled. A job that ended while it waited has no token: it gets a
 * negative one, which no claim ever has. If all attempts were used, one more is allowed. What it asked is answered.
 *
 * No row: the job had not ended so, and nothing was changed. Runs inside the transaction that locked the outcome.
 */
export const requeueEndedJob = operation({
  name: 'requeue_ended_job',
  params: { jobId: 'int8' },
  columns: { attempts: 'int4', maxAttempts: 'int4', queue: 'text' },
  text: (t, p) => sql`with gone as (
      delete from ${t.outcome} where job_id = ${p.jobId} and state in ('discarded', 'cancelled') returning *
    ), noted as (
      insert into ${t.attempt} (job_id, token, ended_at, duration_ms, attempt, ended, error)
      select job_id, coalesce(token, (select least(0, min(a.token)) - 1 from ${t.attempt} a where a.job_id = gone.job_id)),
        finished_at, duration_ms, attempts, state::text::${t.attempt_end},
        case when reason is null then error
          else (coalesce(error::jsonb, jsonb_build_object('name', initcap(state::text), 'message', reason))
            || jsonb_build_object('reason', reason))::json end
      from gone
    ), lifted as (
      update ${t.job} j set max_attempts = greatest(j.max_attempts, gone.attempts + 1)
      from gone where j.id = gone.job_id
      returning j.id, j.queue, j.priority, j.max_attempts, gone.attempts
    ), answered as (
      delete from ${t.effect_question} where job_id = any (array(select id from lifted))
    ), back as (
      insert into ${t.ready} (job_id, priority, attempts, crashes, care, queue)
      select id, priority, attempts, 0, case when attempts + 1 >= max_attempts then 1 else 0 end, queue from lifted
    )
    select attempts::int4, max_attempts::int4, queue, ${t.announce}(array[queue]) as announced from lifted`,
})

import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { batchAnswer, claimColumns, leaseSteps } from './claim-jobs.ts'

/**
 * Claims parked jobs that this worker knows, up to `limit`, with the promises of {@link claimJobs}. Jobs whose
 * input was refused by the same contract are left, unless this worker has started since: a contract says only that
 * shapes may differ, and a release that mends a rule may have the same one.
 */
export const claimParkedJobs = operation({
  name: 'claim_parked_jobs',
  params: { workerId: 'int8', queues: 'text[]', names: 'text[]', contracts: 'text[]', limit: 'int4' },
  columns: claimColumns,
  text: (t, p) => sql`with taken as (
      delete from ${t.parked} where job_id = any (array(
        select r.job_id from unnest(${p.names}, ${p.contracts}) known (name, contract)
        cross join lateral (
          select job_id from ${t.parked} r
          where r.name = known.name and r.queue = any (${p.queues}) and (r.refused_contract is distinct from known.contract
              or r.parked_at < (select started_at from ${t.worker} w where w.id = ${p.workerId}))
            and not exists (select from ${t.queue} q where q.name = r.queue and q.paused_at is not null)
          order by priority, seq limit ${p.limit} for update skip locked
        ) r limit ${p.limit}))
      returning queue, priority, seq, job_id, attempts, crashes, 1::int2 as care
    ), ${leaseSteps(t, p.workerId, sql`true`)}
    select ${batchAnswer(sql`true`)} from batch`,
})

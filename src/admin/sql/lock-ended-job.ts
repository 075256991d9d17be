import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** First step of a retry, in a transaction: locks the outcome, so that two retries of one job go one after the other. */
export const lockEndedJob = operation({
  name: 'lock_ended_job',
  params: { jobId: 'int8' },
  columns: { state: 'text', reason: 'text?', name: 'text', tenant: 'text', uniqueKey: 'text?' },
  text: (t, p) => sql`select o.state::text, o.reason, j.name, j.tenant, j.unique_key
    from ${t.outcome} o join ${t.job} j on j.id = o.job_id
    where o.job_id = ${p.jobId} for update of o`,
})

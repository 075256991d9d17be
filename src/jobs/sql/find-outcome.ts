import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** How a job ended; no row if it has not. A plain read by primary key. */
export const findOutcome = operation({
  name: 'find_outcome',
  params: { jobId: 'int8' },
  columns: {
    state: 'text',
    result: 'json?',
    reason: 'text?',
    error: 'json?',
    attempts: 'int4',
    finishedAt: 'instant',
  },
  repeatable: true,
  text: (t, p) => sql`select state::text, result::text, reason, error::text, attempts::int4,
      (extract(epoch from finished_at) * 1000)::int8 as finished_at
    from ${t.outcome} where job_id = ${p.jobId}`,
})

import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** One row if the job was completed under this token. */
export const findCompletion = operation({
  name: 'find_completion',
  params: { jobId: 'int8', token: 'int8' },
  columns: { jobId: 'int8' },
  repeatable: true,
  text: (t, p) => sql`select job_id from ${t.outcome}
    where job_id = ${p.jobId} and token = ${p.token} and state = 'completed'`,
})

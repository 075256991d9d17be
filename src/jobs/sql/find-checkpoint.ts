import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** What earlier attempts of a job left. */
export const findCheckpoint = operation({
  name: 'find_checkpoint',
  params: { jobId: 'int8' },
  columns: { value: 'json?', fraction: 'float8?', note: 'text?', updatedAt: 'instant' },
  repeatable: true,
  text: (t, p) => sql`select value::text as value, fraction, note,
      (extract(epoch from updated_at) * 1000)::int8 as updated_at
    from ${t.checkpoint} where job_id = ${p.jobId}`,
})

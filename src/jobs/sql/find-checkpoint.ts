import { operation, type Row } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** What earlier attempts of a job left: a value as JSON text, and how far it has come. A plain read by primary key. */
export const findCheckpoint = operation({
  name: 'find_checkpoint',
  params: { jobId: 'int8' },
  columns: {
    value: 'text?',
    updatedAt: 'instant',
    fraction: 'float8?',
    note: 'text?',
    progressAt: 'instant?',
  },
  repeatable: true,
  text: (
    t,
    p,
  ) => sql`select value::text as value, (extract(epoch from updated_at) * 1000)::int8 as updated_at, fraction, note,
      (extract(epoch from progress_at) * 1000)::int8 as progress_at
    from ${t.checkpoint} where job_id = ${p.jobId}`,
})

export type CheckpointRow = Row<typeof findCheckpoint>

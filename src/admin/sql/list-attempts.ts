import { operation, type Row } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** The attempts of a job that did not simply succeed, oldest first. `error` is JSON text. A plain read. */
export const listAttempts = operation({
  name: 'list_attempts',
  params: { jobId: 'int8', limit: 'int4' },
  columns: {
    attempt: 'int4',
    ended: 'text',
    endedAt: 'instant',
    durationMs: 'int4?',
    workerId: 'text?',
    fencingToken: 'text?',
    error: 'text?',
  },
  repeatable: true,
  text: (t, p) => sql`select * from (
      select attempt::int4, ended::text, (extract(epoch from ended_at) * 1000)::int8 as ended_at, duration_ms,
        worker_id::text, case when token > 0 then token::text end as fencing_token, error::text
      from ${t.attempt} a where a.job_id = ${p.jobId} order by a.ended_at desc, a.token desc limit ${p.limit}
    ) newest order by ended_at, fencing_token::bigint nulls first`,
})

export type AttemptRow = Row<typeof listAttempts>

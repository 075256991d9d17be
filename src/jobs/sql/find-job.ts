import { operation, type Row } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** One job with its state, as the view `jobs` tells it. A plain read. */
export const findJob = operation({
  name: 'find_job',
  params: { jobId: 'int8' },
  columns: {
    id: 'text',
    name: 'text',
    queue: 'text',
    tenant: 'text',
    state: 'text',
    attempts: 'int4',
    maxAttempts: 'int4',
    priority: 'int4',
    uniqueKey: 'text?',
    enqueuedAt: 'instant',
    runAt: 'instant?',
    finishedAt: 'instant?',
    reason: 'text?',
    workerId: 'text?',
    fencingToken: 'text?',
    input: 'json',
    result: 'json?',
    error: 'json?',
    checkpoint: 'json?',
    progress: 'float8?',
    progressNote: 'text?',
    progressAt: 'instant?',
  },
  repeatable: true,
  text: (
    t,
    p,
  ) => sql`select j.id::text, name, queue, tenant, state, attempts::int4, max_attempts::int4, priority::int4,
      unique_key, (extract(epoch from enqueued_at) * 1000)::int8 as enqueued_at,
      (extract(epoch from run_at) * 1000)::int8 as run_at, (extract(epoch from finished_at) * 1000)::int8 as finished_at,
      reason, worker_id::text, fencing_token::text, input::text, result::text, error::text, c.value::text as checkpoint,
      c.fraction as progress, c.note as progress_note, (extract(epoch from c.progress_at) * 1000)::int8 as progress_at
    from ${t.jobs} j left join ${t.checkpoint} c on c.job_id = j.id where j.id = ${p.jobId}`,
})

export type FoundJob = Row<typeof findJob>

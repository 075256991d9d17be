import { attemptFence, attemptParams, fenceAnswer, fenceColumns } from '../../attempts/sql/attempt-fence.ts'
import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** Keeps how far the job has come, if the lease is still the worker's. It never falls, over all attempts. */
export const saveProgress = operation({
  name: 'save_progress',
  params: { ...attemptParams, fraction: 'float8', note: 'text?' },
  columns: fenceColumns,
  repeatable: true,
  text: (t, p) => sql`with ${attemptFence(t, p)}, saved as (
      insert into ${t.checkpoint} as c (job_id, token, progress_at, fraction, note)
      select ${p.jobId}, token, clock_timestamp(), ${p.fraction}, ${p.note} from fence where not cancelled
      on conflict (job_id) do update set token = excluded.token, fraction = greatest(c.fraction, excluded.fraction),
        note = excluded.note, progress_at = clock_timestamp()
        where c.token <= excluded.token
    )
    select ${fenceAnswer()}`,
})

import { attemptFence, attemptParams, fenceAnswer, fenceColumns } from '../../attempts/sql/attempt-fence.ts'
import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** Keeps a value for the attempts to come, if the lease is still the worker's; how far the job had come stays. */
export const saveCheckpoint = operation({
  name: 'save_checkpoint',
  params: { ...attemptParams, value: 'json' },
  columns: fenceColumns,
  repeatable: true,
  text: (t, p) => sql`with ${attemptFence(t, p)}, saved as (
      insert into ${t.checkpoint} as c (job_id, token, value)
      select ${p.jobId}, token, ${p.value} from fence where not cancelled
      on conflict (job_id) do update set token = excluded.token, value = excluded.value, updated_at = clock_timestamp()
        where c.token <= excluded.token
      returning job_id
    ), marked as (
      update ${t.job} set has_checkpoint = true
      where id = any (array(select job_id from saved)) and has_checkpoint is null
    )
    select ${fenceAnswer()}`,
})

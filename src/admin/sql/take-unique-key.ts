import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Second step of a retry: takes the job's unique key again. No row: a live job holds it. Waits for a transaction
 * that is inserting the same key, or deleting it, to end.
 */
export const takeUniqueKey = operation({
  name: 'take_unique_key',
  params: { jobId: 'int8', tenant: 'text', name: 'text', key: 'text' },
  columns: { jobId: 'text' },
  text: (t, p) => sql`insert into ${t.unique_key} (job_id, tenant, name, key)
    values (${p.jobId}, ${p.tenant}, ${p.name}, ${p.key})
    on conflict (tenant, name, key) do nothing returning job_id::text`,
})

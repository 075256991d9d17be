import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** The live job that holds a unique key. A statement of its own: a row committed after an insert's snapshot is seen only by a later one. */
export const findKeyHolder = operation({
  name: 'find_key_holder',
  params: { tenant: 'text', name: 'text', key: 'text' },
  columns: { jobId: 'int8' },
  repeatable: true,
  text: (t, p) => sql`select job_id from ${t.unique_key}
    where tenant = ${p.tenant} and name = ${p.name} and key = ${p.key}`,
})

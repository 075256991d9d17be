import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** Names of the queues that are known from anything but ended jobs. Scans what is scheduled and parked. A plain read. */
export const listQueueNames = operation({
  name: 'list_queue_names',
  params: {},
  columns: { name: 'text' },
  repeatable: true,
  text: (t) => sql`select name from ${t.queue} union select queue from ${t.job_definition}
    union select queue from ${t.ready} union select queue from ${t.scheduled} union select queue from ${t.parked}
    union select q ->> 'name' from ${t.worker} w cross join lateral json_array_elements(w.queues) q
    union select j.queue from ${t.lease} l cross join lateral pg_catalog.unnest(l.job_ids) h (job_id) join ${t.job} j on j.id = h.job_id
    order by 1`,
})

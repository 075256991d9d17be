import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * The heartbeat: renews every lease of a worker by one small update. No row: the worker was declared dead, and
 * all it held has gone to others. `cancelled` are the jobs it executes that were cancelled meanwhile.
 */
export const renewLeases = operation({
  name: 'renew_leases',
  params: { workerId: 'int8' },
  columns: { cancelled: 'json?' },
  repeatable: true,
  deadlineMs: 10_000,
  text: (t, p) => sql`update ${t.worker} set heartbeat_at = clock_timestamp() where id = ${p.workerId}
    returning (select json_agg(json_build_array(c.id::text, c.reason))::text
      from ${t.lease} l cross join lateral unnest(l.cancelled, l.cancel_reasons) c (id, reason)
      where l.worker_id = ${p.workerId} and l.cancelled <> '{}') as cancelled`,
})

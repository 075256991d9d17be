import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Ends a worker that has settled or handed back all it held. If a lease is left, its row stays but counts as
 * stale at once, so that the next rescue takes it up without waiting. Safe to repeat.
 */
export const removeWorker = operation({
  name: 'remove_worker',
  params: { workerId: 'int8' },
  columns: { leases: 'int4' },
  repeatable: true,
  text: (t, p) => sql`with held as materialized (
      select count(*)::int4 as leases from ${t.lease} where worker_id = ${p.workerId}
    ), gone as (
      delete from ${t.worker} where id = ${p.workerId} and (select leases from held) = 0
    ), stale as (
      update ${t.worker} set heartbeat_at = to_timestamp(0) where id = ${p.workerId} and (select leases from held) > 0
    ), silent as (
      delete from ${t.waiter} where worker_id = ${p.workerId}
    )
    select leases from held`,
})

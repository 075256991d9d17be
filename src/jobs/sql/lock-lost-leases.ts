import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * First half of a rescue: locks leases whose worker has not renewed them in time by PostgreSQL's clock, or whose
 * worker is gone, up to `limit`. Runs inside a transaction; {@link requeueLostLeases} is the second half.
 *
 * Workers are locked before leases. A worker that renews between the look and the lock is looked at again under
 * the lock, by PostgreSQL, and left alone. `skip locked`: several rescuers share the work, and a transaction
 * that holds a fence is passed over until it ends.
 */
export const lockLostLeases = operation({
  name: 'lock_lost_leases',
  params: { limit: 'int4' },
  columns: { workerIds: 'json?', tokens: 'json?' },
  text: (t, p) => sql`with dead as materialized (
      select id from ${t.worker} where heartbeat_at + lease_ms * interval '1 millisecond' < clock_timestamp()
      order by id limit 100 for update skip locked
    ), lost as materialized (
      select token from ${t.lease} lease
      where worker_id in (select id from dead)
        or not exists (select from ${t.worker} w where w.id = lease.worker_id)
      order by token limit ${p.limit} for update skip locked
    )
    select (select json_agg(id::text)::text from dead) as worker_ids, (select json_agg(token::text)::text from lost) as tokens`,
})

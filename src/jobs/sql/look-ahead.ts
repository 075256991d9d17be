import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Tells a worker that is about to sleep what will need it next, in milliseconds from now; null: nothing in sight.
 * `dueInMs`: when the next scheduled job falls due. `expiryInMs`: when the next lease can run out, unless its
 * worker renews it; past, if there is one whose worker is gone already (a claim that arrived after its end).
 * `ready`: the queues of this worker that have jobs now, the guarantee for those whose notification was lost.
 * `parked`: whether jobs were parked that this worker may know. A plain read.
 */
export const lookAhead = operation({
  name: 'look_ahead',
  params: { workerId: 'int8', names: 'text[]', queues: 'text[]' },
  columns: { dueInMs: 'int8?', expiryInMs: 'int8?', ready: 'json?', parked: 'bool' },
  repeatable: true,
  text: (t, p) => sql`select
      (select ceil(extract(epoch from run_at - clock_timestamp()) * 1000)::int8
        from ${t.scheduled} order by run_at, job_id limit 1) as due_in_ms,
      case when exists (select from ${t.lease} l where (select true from ${t.worker} w where w.id = l.worker_id limit 1) is null) then -1000
        else (select ceil(extract(epoch from min(heartbeat_at + lease_ms * interval '1 millisecond') - clock_timestamp()) * 1000)::int8
          from ${t.worker} where id <> ${p.workerId}) end as expiry_in_ms,
      (select json_agg(q)::text from pg_catalog.unnest(${p.queues}) q where (select true from ${t.ready} r where r.queue = q limit 1)) as ready,
      exists (select from ${t.parked} where name = any (${p.names})) as parked`,
})

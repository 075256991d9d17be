import { isSettled } from '../../attempts/sql/attempt-fence.ts'
import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { jobRow } from './probes.ts'

/**
 * Ends leases of which nothing is left: each of their jobs has an outcome or an attempt with the lease's token, or is
 * gone. `left` are those of which something is. For leases that were settled in parts; one that is settled whole is
 * ended by the statement that does it. By token, not by worker, as in `fenceStep`. Safe to repeat.
 *
 * `busy` are those that another transaction holds, such as an abandoned handler's: passed over, to be tried again.
 */
export const closeLeases = operation({
  name: 'close_leases',
  params: { workerId: 'int8', tokens: 'int8[]' },
  columns: { left: 'int8[]?', busy: 'int8[]?' },
  repeatable: true,
  text: (t, p) => sql`with mine as materialized (
      select token, job_ids from ${t.lease} where token = any (${p.tokens}) and worker_id + 0 = ${p.workerId} order by token for update skip locked
    ), held as materialized (
      select mine.token, h.job_id from mine cross join lateral unnest(mine.job_ids) h (job_id)
    ), unsettled as materialized (
      select distinct token from held where not ${isSettled(t, sql`held.job_id`, sql`held.token`)}
        and (select true from ${jobRow(t, sql`held.job_id`)} j) is true
    ), closed as (
      delete from ${t.lease} where token = any (array(select token from mine except select token from unsettled))
    )
    select (select array_agg(token)::text from unsettled) as "left",
      (select array_agg(l.token)::text from ${t.lease} l where l.token = any (${p.tokens}) and l.worker_id + 0 = ${p.workerId}
        and l.token not in (select token from mine)) as busy`,
})

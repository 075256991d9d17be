import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** Says that a worker sleeps and wants to be told of jobs in `queues`. Look once more after it commits. Safe to repeat. */
export const startWaiting = operation({
  name: 'start_waiting',
  params: { workerId: 'int8', queues: 'text[]' },
  columns: {},
  repeatable: true,
  text: (t, p) => sql`insert into ${t.waiter} (queue, worker_id)
    select q, ${p.workerId} from pg_catalog.unnest(${p.queues}) q order by q on conflict do nothing`,
})

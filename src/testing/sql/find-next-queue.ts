import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** The queue, of those asked for and not paused, whose turn it is: that of the first job by priority and place. A plain read. */
export const findNextQueue = operation({
  name: 'find_next_queue',
  params: { queues: 'text[]' },
  columns: { queue: 'text' },
  repeatable: true,
  text: (t, p) => sql`select r.queue from ${t.ready} r
    where r.queue = any (${p.queues})
      and not exists (select from ${t.queue} q where q.name = r.queue and q.paused_at is not null)
    order by r.priority, r.seq limit 1`,
})

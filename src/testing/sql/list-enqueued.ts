import { operation, type Row } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** Every job that is stored, by id: in the order in which they were enqueued. A plain read. */
export const listEnqueued = operation({
  name: 'list_enqueued',
  params: {},
  columns: {
    id: 'text',
    name: 'text',
    queue: 'text',
    state: 'text',
    reason: 'text?',
    attempts: 'int4',
    priority: 'int4',
    uniqueKey: 'text?',
    runAt: 'instant?',
    input: 'json',
    result: 'json?',
  },
  repeatable: true,
  text: (t) => sql`select j.id::text as id, j.name, j.queue, j.state, j.reason, j.attempts::int4 as attempts,
      j.priority::int4 as priority, j.unique_key, (extract(epoch from j.run_at) * 1000)::int8 as run_at,
      j.input::text as input, j.result::text as result
    from ${t.jobs} j order by j.id`,
})

export type StoredJob = Row<typeof listEnqueued>

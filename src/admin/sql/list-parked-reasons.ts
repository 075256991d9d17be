import { operation, type Row } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** Parked jobs, counted by job name, queue and reason, the most frequent first. A plain read. */
export const listParkedReasons = operation({
  name: 'list_parked_reasons',
  params: { limit: 'int4' },
  columns: { name: 'text', queue: 'text', reason: 'text', jobs: 'int8', since: 'instant' },
  repeatable: true,
  text: (
    t,
    p,
  ) => sql`select name, queue, reason, count(*) as jobs, (extract(epoch from min(parked_at)) * 1000)::int8 as since
    from ${t.parked} group by name, queue, reason order by 4 desc, name, queue, reason limit ${p.limit}`,
})

export type ParkedReason = Row<typeof listParkedReasons>

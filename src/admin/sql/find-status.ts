import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** What waits for the clock, and what waits for a person. Counts all outcomes: some 100 ms per million. A plain read. */
export const findStatus = operation({
  name: 'find_status',
  params: {},
  columns: { now: 'instant', nextDueAt: 'instant?', scheduled: 'int8', discarded: 'int8' },
  repeatable: true,
  text: (t) => sql`select (extract(epoch from clock_timestamp()) * 1000)::int8 as now,
      (select (extract(epoch from run_at) * 1000)::int8 from ${t.scheduled} order by run_at, job_id limit 1) as next_due_at,
      (select count(*) from ${t.scheduled}) as scheduled,
      (select count(*) from ${t.outcome} where state = 'discarded') as discarded`,
})

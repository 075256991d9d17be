import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Looks for the first job of a class in a window of places, `after < seq <= upto`; no row: there is none. A plain
 * read for the sweeper: what it walks over is bounded by the window. `elapsedMs`: what it took on the server.
 */
export const findReadyBehind = operation({
  name: 'find_ready_behind',
  params: { queue: 'text', priority: 'int2', after: 'int8', upto: 'int8' },
  columns: { seq: 'int8?', elapsedMs: 'float8' },
  repeatable: true,
  text: (t, p) => sql`with first_one as materialized (
      select seq from ${t.ready} where queue = ${p.queue} and priority = ${p.priority} and seq > ${p.after} and seq <= ${p.upto}
      order by seq limit 1
    )
    select (select seq from first_one) as seq,
      date_part('epoch', clock_timestamp() - statement_timestamp()) * 1000 as elapsed_ms`,
})

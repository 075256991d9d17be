import { operation, type Row } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Draws values that follow one another; without a key, a repetition draws others. Waits for whoever has drawn from the
 * sequence and has not ended, and is waited for until its own transaction ends. The statuses are with the function.
 */
export const drawValues = operation({
  name: 'draw_values',
  params: { tenant: 'text', name: 'text', count: 'int8', key: 'text?' },
  columns: { status: 'text', first: 'int8?', last: 'int8?', increment: 'int8?', available: 'int8?' },
  text: (t, p) => sql`select d.status, d.first_value as first, d.last_value as last, d.increment, d.available
    from ${t.draw_values}(${p.tenant}, ${p.name}, ${p.count}, ${p.key}) d`,
})

export type Drawn = Row<typeof drawValues>

import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** Says that a worker is busy and finds jobs by itself, so that enqueues need not announce them. Safe to repeat. */
export const stopWaiting = operation({
  name: 'stop_waiting',
  params: { workerId: 'int8' },
  columns: {},
  repeatable: true,
  text: (t, p) => sql`delete from ${t.waiter} where worker_id = ${p.workerId}`,
})

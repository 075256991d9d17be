import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** Tells the worker that executes a job to look for cancelled ones: a hint, its heartbeat finds them too. */
export const announceCancel = operation({
  name: 'announce_cancel',
  params: { workerId: 'int8' },
  columns: {},
  repeatable: true,
  text: (t, p) => sql`select ${t.announce_cancel}(${p.workerId})`,
})

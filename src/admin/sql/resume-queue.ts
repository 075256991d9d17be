import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** Resumes a paused queue and wakes its sleeping workers. No row: it was not paused. Locks the queue's row. Safe to repeat. */
export const resumeQueueRow = operation({
  name: 'resume_queue',
  params: { queue: 'text' },
  columns: { name: 'text' },
  repeatable: true,
  text: (t, p) => sql`update ${t.queue} set paused_at = null, pause_reason = null
    where name = ${p.queue} and paused_at is not null
    returning name, ${t.announce}(array[name]) as announced`,
})

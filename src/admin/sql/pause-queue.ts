import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Pauses a queue: from this commit on no worker claims from it, however a job became ready. Executing jobs go on.
 * Paused before, it stays paused since then, with the new reason. Locks the queue's row. Safe to repeat.
 */
export const pauseQueueRow = operation({
  name: 'pause_queue',
  params: { queue: 'text', reason: 'text?' },
  columns: { pausedAt: 'instant' },
  repeatable: true,
  text: (t, p) => sql`insert into ${t.queue} as q (name, paused_at, pause_reason)
    values (${p.queue}, clock_timestamp(), ${p.reason})
    on conflict (name) do update set paused_at = coalesce(q.paused_at, excluded.paused_at), pause_reason = excluded.pause_reason
    returning (extract(epoch from paused_at) * 1000)::int8 as paused_at`,
})

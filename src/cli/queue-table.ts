import type { QueueRow } from '../admin/sql/list-queues.ts'
import { at, span } from '../admin/time-text.ts'
import type { Output } from './output.ts'

/** Queues as a table for people. */
export function queueTable(queues: readonly QueueRow[], output: Output): readonly string[] {
  return output.table(
    queues,
    [
      { title: 'queue', value: (queue) => queue.name },
      { title: 'available', value: (queue) => queue.available, right: true },
      { title: 'oldest', value: (queue) => waiting(queue), right: true },
      { title: 'scheduled', value: (queue) => queue.scheduled, right: true },
      { title: 'parked', value: (queue) => queue.parked, right: true },
      { title: 'executing', value: (queue) => `${queue.executing}/${queue.slots}`, right: true },
      { title: 'workers', value: (queue) => queue.workers, right: true },
      { title: 'paused', value: (queue) => paused(queue) },
    ],
    'no queues',
  )
}

function waiting({ oldestAt, now }: QueueRow): string | null {
  return oldestAt === null ? null : span(now.getTime() - oldestAt.getTime())
}

function paused({ pausedAt, pauseReason }: QueueRow): string | null {
  if (pausedAt === null) return null
  return `since ${at(pausedAt)}${pauseReason === null ? '' : `: ${pauseReason}`}`
}

import { pauseQueue } from '../../admin/queues.ts'
import { at } from '../../admin/time-text.ts'
import { command } from '../command.ts'
import { openDatabase } from '../open-database.ts'

/** Pauses a queue for all workers, over restarts. */
export const queuesPause = command({
  name: 'queues pause',
  description: 'Pause a queue: nothing of it starts anywhere until it is resumed; running jobs go on',
  args: {
    queue: { type: 'positional', description: 'Name of the queue' },
    reason: { type: 'string', description: 'Why, for those who look later' },
  },
  async run({ args, output }) {
    await using opened = await openDatabase(args)
    const configured = opened.app?.composition.queues.keys() ?? []
    const { queue, reason } = args
    const { pausedAt } = await pauseQueue(opened.database, queue, { reason, configured })
    output.print({ queue, pausedAt, reason: reason ?? null }, () => [
      `queue "${queue}" is paused since ${at(pausedAt)}; end it with: holdfast queues resume "${queue}"`,
    ])
  },
})

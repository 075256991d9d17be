import { resumeQueue } from '../../admin/queues.ts'
import { command } from '../command.ts'
import { openDatabase } from '../open-database.ts'

/** Resumes a paused queue; its workers are woken at once. */
export const queuesResume = command({
  name: 'queues resume',
  description: 'Resume a paused queue; its workers start at once',
  args: { queue: { type: 'positional', description: 'Name of the queue' } },
  async run({ args, output }) {
    await using opened = await openDatabase(args)
    const { queue } = args
    const configured = opened.app?.composition.queues.keys() ?? []
    const resumed = await resumeQueue(opened.database, queue, { configured })
    output.print({ queue, resumed }, () => [`queue "${queue}" ${resumed ? 'is resumed' : 'was not paused'}`])
  },
})

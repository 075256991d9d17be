import { moveAllToQueue, moveToQueue } from '../../admin/move-jobs.ts'
import { checkName } from '../../base/check.ts'
import { actOnJobs } from '../act-on-jobs.ts'
import { usageError } from '../cli-error.ts'
import { command } from '../command.ts'
import { openDatabase } from '../open-database.ts'

/** Moves waiting jobs to another queue: some, or all that a removed queue has left behind. */
export const jobsMove = command({
  name: 'jobs move',
  description: 'Move waiting jobs to another queue: some by id, or all of a queue',
  args: {
    queue: { type: 'string', description: 'Where to. Required' },
    'from-queue': { type: 'string', description: 'With --all: the queue to empty' },
    all: { type: 'boolean', description: 'Every waiting job of --from-queue' },
  },
  list: { of: 'ids of jobs', optional: true },
  async run({ args, list, output }) {
    const from = args['from-queue']
    const queue = checkName('--queue', args.queue)
    if ((from !== undefined) !== (args.all === true) || (from !== undefined) === list.length > 0)
      throw usageError('give ids and --queue, or --from-queue, --all and --queue')
    await using opened = await openDatabase(args)
    if (from !== undefined) {
      const moved = await moveAllToQueue(opened, from, queue)
      output.print({ moved, from, queue }, () => [
        `${moved} waiting ${moved === 1 ? 'job' : 'jobs'} moved from "${from}" to "${queue}"`,
      ])
      return
    }
    await actOnJobs(output, list, async (id) => {
      const answer = await moveToQueue(opened, id, queue)
      if (answer.status === 'moved') return { done: true, message: `moved to "${queue}"` }
      return { done: false, message: `is ${answer.state}, and only a waiting job can be moved` }
    })
  },
})

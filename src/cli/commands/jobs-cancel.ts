import { cancelJob } from '../../admin/cancel-job.ts'
import { actOnJobs } from '../act-on-jobs.ts'
import { command } from '../command.ts'
import { openDatabase } from '../open-database.ts'

/** Cancels jobs, waiting or executing. */
export const jobsCancel = command({
  name: 'jobs cancel',
  description: 'Cancel jobs: a waiting one never starts, an executing one is told to stop',
  args: { reason: { type: 'string', description: 'Why, for those who look later' } },
  list: { of: 'ids of jobs' },
  async run({ args, list, output }) {
    await using opened = await openDatabase(args)
    await actOnJobs(output, list, async (id) => {
      const answer = await cancelJob(opened, id, args.reason)
      switch (answer.status) {
        case 'cancelled':
          return { done: true, message: 'cancelled' }
        case 'cancelling':
          return {
            done: true,
            message: 'is executing and was told; it ends cancelled, whatever its handler does',
          }
        case 'finished':
          return { done: false, message: `is ${answer.state} already; an ended job cannot be cancelled` }
      }
    })
  },
})

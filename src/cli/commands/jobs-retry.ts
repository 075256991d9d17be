import { retryJob } from '../../admin/retry-job.ts'
import { actOnJobs } from '../act-on-jobs.ts'
import { command } from '../command.ts'
import { openDatabase } from '../open-database.ts'

/** Makes discarded or cancelled jobs available again. */
export const jobsRetry = command({
  name: 'jobs retry',
  description: 'Make discarded or cancelled jobs available again; their history stays',
  args: {},
  list: { of: 'ids of jobs' },
  async run({ args, list, output }) {
    await using opened = await openDatabase(args)
    await actOnJobs(output, list, async (id) => {
      const answer = await retryJob(opened, id)
      if (answer.status === 'ready') {
        const { queue, attempts, maxAttempts } = answer
        return {
          done: true,
          message: `available in queue "${queue}"; attempt ${attempts + 1} of ${maxAttempts} is next`,
        }
      }
      const next = answer.state === 'completed' ? 'enqueue a new one to run it again' : 'it runs by itself'
      return {
        done: false,
        message: `is ${answer.state}, and only discarded or cancelled jobs can be retried; ${next}`,
      }
    })
  },
})

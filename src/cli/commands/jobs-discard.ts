import { discardJob } from '../../admin/discard-job.ts'
import { requireReason } from '../../admin/reason.ts'
import { actOnJobs } from '../act-on-jobs.ts'
import { command } from '../command.ts'
import { openDatabase } from '../open-database.ts'

/** Discards waiting jobs, with a reason. */
export const jobsDiscard = command({
  name: 'jobs discard',
  description: 'Discard waiting jobs: they never run unless somebody retries them',
  args: { reason: { type: 'string', description: 'Why, for those who look later. Required' } },
  list: { of: 'ids of jobs' },
  async run({ args, list, output }) {
    requireReason(args.reason)
    await using opened = await openDatabase(args)
    await actOnJobs(output, list, async (id) => {
      const answer = await discardJob(opened, id, args.reason)
      if (answer.status === 'discarded') return { done: true, message: 'discarded' }
      const next = answer.state === 'executing' ? 'cancel it instead' : 'nothing is left to discard'
      return { done: false, message: `is ${answer.state}, and only a waiting job can be discarded; ${next}` }
    })
  },
})

import { pruneJobs } from '../../admin/prune-jobs.ts'
import { limits } from '../../base/limits.ts'
import { command, numberOption } from '../command.ts'
import { openDatabase } from '../open-database.ts'

/** Deletes ended jobs with their history; discarded ones only if they are asked for by name. */
export const jobsPrune = command({
  name: 'jobs prune',
  description: 'Delete jobs that ended long ago; discarded ones only with --state discarded',
  args: {
    state: {
      type: 'string',
      description: 'completed, cancelled or discarded. Default: completed and cancelled',
    },
    'older-than-days': {
      type: 'string',
      valueHint: 'days',
      description: 'Ended so many days ago. Default: 1 for completed, 7 for cancelled, 30 for discarded',
    },
  },
  async run({ args, output }) {
    const days = args['older-than-days']
    const { default: _, ...range } = limits.completedRetentionDays
    const olderThanDays = numberOption('--older-than-days', days, { ...range, default: undefined })
    await using opened = await openDatabase(args)
    const answers = await pruneJobs(opened.database, { state: args.state, olderThanDays })
    output.print(answers, () =>
      answers.map(
        ({ state, pruned, olderThanDays: age }) =>
          `${pruned} ${state} ${pruned === 1 ? 'job' : 'jobs'} deleted that ended more than ${age} days ago`,
      ),
    )
  },
})

import { listJobs } from '../../admin/list-jobs.ts'
import { at } from '../../admin/time-text.ts'
import { limits } from '../../base/limits.ts'
import { command, numberOption } from '../command.ts'
import { openDatabase } from '../open-database.ts'

/** A page of jobs, without inputs and results. */
export const jobsList = command({
  name: 'jobs list',
  description: 'List jobs, newest first, a page at a time',
  args: {
    state: { type: 'string', description: 'Only this state, such as discarded' },
    queue: { type: 'string', description: 'Only this queue' },
    name: { type: 'string', description: 'Only jobs of this name' },
    limit: { type: 'string', valueHint: 'rows', description: 'Rows of a page: 1 to 1,000. Default: 50' },
    after: {
      type: 'string',
      valueHint: 'id',
      description: 'The next page: the cursor that the page before gave',
    },
  },
  async run({ args, output }) {
    const { state, queue, name, after } = args
    const limit = numberOption('--limit', args.limit, limits.pageRows)
    await using opened = await openDatabase(args)
    const page = await listJobs(opened.database, { state, queue, name, limit, after })
    output.print(page, () => [
      ...output.table(
        page.jobs,
        [
          { title: 'id', value: (job) => job.id, right: true },
          { title: 'state', value: (job) => job.state },
          { title: 'name', value: (job) => job.name },
          { title: 'queue', value: (job) => job.queue },
          { title: 'attempts', value: (job) => `${job.attempts}/${job.maxAttempts}`, right: true },
          { title: 'enqueued', value: (job) => at(job.enqueuedAt) },
          { title: 'due', value: (job) => (job.runAt === null ? null : at(job.runAt)) },
          { title: 'reason', value: (job) => job.reason },
        ],
        'no jobs',
      ),
      ...(page.next === null ? [] : [`more: --after ${page.next}`]),
    ])
  },
})

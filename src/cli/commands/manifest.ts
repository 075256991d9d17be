import { manifestOf } from '../../admin/manifest.ts'
import { command } from '../command.ts'
import { openApp } from '../open-database.ts'
import { withAppFile } from '../with-app-file.ts'

/** What the application declares. Needs no database; fails if the declaration cannot work. */
export const manifest = command({
  name: 'manifest',
  description: 'Print the jobs, queues and contracts of the app, checked, in a form that can be compared',
  args: { file: { type: 'positional', required: false, description: 'App file' } },
  async run({ args, output }) {
    const app = await openApp(withAppFile(args))
    const declared = manifestOf(app.composition)
    output.print(declared, () => [
      output.heading(`${declared.app}, schema "${declared.schema}"`),
      '',
      ...output.table(
        declared.queues,
        [
          { title: 'queue', value: (queue) => queue.name },
          { title: 'concurrency', value: (queue) => queue.concurrency, right: true },
        ],
        'no queues',
      ),
      '',
      ...output.table(
        declared.jobs,
        [
          { title: 'job', value: (job) => job.name },
          { title: 'queue', value: (job) => job.queue },
          { title: 'priority', value: (job) => job.priority, right: true },
          { title: 'attempts', value: (job) => job.maxAttempts, right: true },
          {
            title: 'timeout',
            value: (job) => (job.timeoutMs === null ? null : `${job.timeoutMs} ms`),
            right: true,
          },
          { title: 'contract', value: (job) => job.contract },
        ],
        'no jobs',
      ),
    ])
    await app.close()
  },
})

import { usageError } from '../cli-error.ts'
import { command } from '../command.ts'
import { childMark, runDevChild, runDevParent } from '../dev.ts'
import { findAppFile } from '../load-app.ts'
import { logArgs, logOptions } from '../log-options.ts'
import { withAppFile } from '../with-app-file.ts'

/** Everything in one process, restarted when a file of the app changes. */
export const dev = command({
  name: 'dev',
  description: 'Migrate and run a worker, and start anew when a file of the app changes',
  args: { file: { type: 'positional', required: false, description: 'App file' }, ...logArgs },
  async run({ args, output }) {
    const { app, database, schema } = withAppFile(args)
    if (database !== undefined || schema !== undefined)
      throw usageError('dev uses the database of the app; set DATABASE_URL if the app reads that')
    const file = findAppFile(app)
    if (file === undefined)
      throw usageError('no app file here (app.ts, app.js); name one: holdfast dev path/to/app.ts')
    const log = logOptions(args, output, { level: 'debug', format: 'pretty' })
    process.exitCode = process.env[childMark] === '1' ? await runDevChild(file, log) : await runDevParent()
  },
})

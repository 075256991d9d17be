import { InvalidArgumentError } from '../../base/errors.ts'
import { limits } from '../../base/limits.ts'
import { command, listOption, numberOption } from '../command.ts'
import { logArgs, logOptions } from '../log-options.ts'
import { openApp } from '../open-database.ts'
import { runWorker } from '../run-worker.ts'
import { withAppFile } from '../with-app-file.ts'

/** Runs a worker in the foreground; ends by SIGTERM or SIGINT. Listens on no socket. */
export const worker = command({
  name: 'worker',
  description: 'Run a worker until SIGTERM or SIGINT; a second signal aborts what still runs',
  args: {
    file: { type: 'positional', required: false, description: 'App file' },
    queues: { type: 'string', valueHint: 'a,b', description: 'Serve only these queues. Default: all' },
    concurrency: { type: 'string', valueHint: 'q=4,r=2', description: 'Jobs at a time, by queue' },
    name: { type: 'string', description: 'A label for people. Default: host and process id' },
    ...logArgs,
  },
  async run({ args, output }) {
    const queues = listOption(args.queues)
    const concurrency = readConcurrency(args.concurrency)
    const app = await openApp(withAppFile(args))
    process.exitCode = await runWorker(app, {
      ...(queues === undefined ? {} : { queues }),
      ...(concurrency === undefined ? {} : { concurrency }),
      ...(args.name === undefined ? {} : { name: args.name }),
      ...logOptions(args, output),
    })
  },
})

/** `q=4,r=2` as numbers by queue. A queue's name may hold `=`; its number may not. */
function readConcurrency(text: string | undefined): Readonly<Record<string, number>> | undefined {
  const items = listOption(text)?.map((item) => {
    const split = item.lastIndexOf('=')
    if (split < 1)
      throw new InvalidArgumentError({
        field: '--concurrency',
        problem: `must be like mail=4, not "${item}"`,
      })
    const queue = item.slice(0, split)
    const number = numberOption(`--concurrency ${queue}`, item.slice(split + 1), limits.concurrency)
    return [queue, number] as const
  })
  return items === undefined ? undefined : Object.fromEntries(items)
}

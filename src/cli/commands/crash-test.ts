import fs from 'node:fs'
import type { AnyJob } from '../../jobs/define-job.ts'
import { usageError } from '../cli-error.ts'
import { command } from '../command.ts'
import { exitCodes } from '../exit-codes.ts'
import { openApp } from '../open-database.ts'

/** How long one run may take: no test runner waits here. */
const RUN_MS = 30_000

/** Kills a job's handler at each of its steps, in memory, and shows what was done twice or not at all. */
export const crashTest = command({
  name: 'crash-test',
  description: 'Kill a handler at each of its steps, in memory, and show what was done twice',
  args: {
    input: {
      type: 'string',
      valueHint: 'file',
      description: 'The job’s input, a file with JSON. Default: {}',
    },
    setup: {
      type: 'string',
      valueHint: 'file',
      description: 'SQL that makes the app’s tables, run before each run. Default: none',
    },
    'unique-key': { type: 'string', valueHint: 'key', description: 'The job’s unique key. Default: none' },
  },
  list: { of: 'an app file, if it is not the one of this folder, and the name of a job' },
  async run({ args, list, output }) {
    const [file, name, further] = list.length === 1 ? [args.app, list[0]] : list
    if (name === undefined || further !== undefined)
      throw usageError('give an app file and the name of one job: holdfast crash-test app.ts JOB')
    if (list.length > 1 && args.app !== undefined)
      throw usageError('the app file is given twice, as an argument and as --app; give it once')
    const app = await openApp({ ...args, app: file })
    const job = app.composition.jobs.get(name)
    if (job === undefined) {
      const known = [...app.composition.jobs.keys()].join(', ')
      throw usageError(`the app has no job "${name}"; it has: ${known}`)
    }
    const input = args.input === undefined ? {} : readJson(args.input)
    const uniqueKey = args['unique-key']
    // Nothing else of the command needs it, and a worker should not carry it.
    const { everyCrashPoint } = await import('../../testing/crash/every-crash-point.ts')
    const report = await everyCrashPoint(app, job as AnyJob, input, {
      setup: args.setup === undefined ? undefined : readFile(args.setup),
      enqueue: uniqueKey === undefined ? {} : { uniqueKey },
      timeoutMs: RUN_MS,
    })
    const { expected, points, ok } = report
    output.print({ job: name, ok, expected, points }, () => [report.toString()])
    if (!ok) process.exitCode = exitCodes.failed
    await app.close()
  },
})

function readFile(file: string): string {
  try {
    return fs.readFileSync(file, 'utf8')
  } catch (error) {
    throw usageError(`"${file}" cannot be read; check the path`, { cause: error })
  }
}

function readJson(file: string): unknown {
  const text = readFile(file)
  try {
    return JSON.parse(text)
  } catch (error) {
    throw usageError(`"${file}" is not JSON`, { cause: error })
  }
}

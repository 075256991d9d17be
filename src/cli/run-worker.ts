import type { App } from '../app/app.ts'
import type { WorkerOptions } from '../app/app-options.ts'
import { createLogger, type LogLevel } from '../app/logger.ts'
import type { Logger } from '../base/logger.ts'
import type { Worker } from '../worker/worker.ts'
import { exitCodes } from './exit-codes.ts'
import { logEvents } from './log-events.ts'
import { listenToSignals } from './signals.ts'

export interface RunWorkerOptions extends Pick<WorkerOptions, 'queues' | 'concurrency' | 'name'> {
  readonly level: LogLevel
  readonly format: 'pretty' | 'json' | 'auto'
  readonly color: boolean
  /** Asked to stop by this too, as by a first signal. Default: by signals only. */
  readonly signal?: AbortSignal
}

/** Why a worker's run ends. */
interface Ending {
  readonly code: number
  readonly message: string
}

/**
 * Runs a worker until a signal, or something it cannot go on from: the schema was dropped or changed, or a handler
 * never returns. Then stops it in two stages and closes the application.
 *
 * @returns The exit code; see `exit-codes.ts`.
 * @throws What `start` throws: nothing was claimed.
 */
export async function runWorker(app: App, options: RunWorkerOptions): Promise<number> {
  const { level, format, color, signal, ...others } = options
  const logger = createLogger({ level, format, ...(color ? {} : { color }) })
  const isForPeople = format === 'pretty' || (format === 'auto' && process.stdout.isTTY)
  const endLog = logEvents(app.events, logger, { least: level, withFacts: !isForPeople })
  const worker = app.worker({ ...others, endProcessWhenStuck: true, logger })
  warnOfUnserved(app, others.queues, logger)
  // Whoever reads the log may go away; the jobs go on.
  process.stdout.removeAllListeners('error').on('error', () => {})
  // Timers and sockets of a worker may all be idle; this process is to stay.
  const stay = setInterval(() => {}, 60_000)
  try {
    const ending = waitForEnding(app, worker, signal)
    await worker.start()
    const { code, message } = await ending.promise
    logger[code === exitCodes.done ? 'info' : 'error'](message)
    if (code !== exitCodes.done) process.stderr.write(`error: ${message}\n`)
    await worker.stop()
    ending.end()
    return code
  } finally {
    clearInterval(stay)
    await app.close()
    endLog()
  }
}

function waitForEnding(app: App, worker: Worker, signal: AbortSignal | undefined) {
  let settle: (ending: Ending) => void = () => {}
  const promise = new Promise<Ending>((resolve) => {
    settle = resolve
  })
  const ends = [
    listenToSignals({
      onStop: (name) => settle({ code: exitCodes.done, message: `${name}: stopping; running jobs may end` }),
      onAbort: () => void worker.stop({ shutdownMs: 0 }),
      onEnd: () => process.exit(exitCodes.interrupted),
    }),
    app.events.on('handler.abandoned', ({ jobId, jobName }) =>
      settle({
        code: exitCodes.restart,
        message: `the handler of job ${jobId} (${jobName}) does not return: this process drains and ends, to be started again`,
      }),
    ),
    app.events.on('worker.error', ({ error }) => {
      if (isSchemaFault(error))
        settle({ code: exitCodes.schema, message: `the worker cannot go on: ${error.message}` })
    }),
  ]
  const stop = () => settle({ code: exitCodes.done, message: 'stopping; running jobs may end' })
  signal?.addEventListener('abort', stop, { once: true })
  return { promise, end: () => ends.forEach((each) => each()) }
}

function isSchemaFault(error: unknown): error is Error {
  return error instanceof Error && (error as { readonly code?: unknown }).code === 'SCHEMA_VERSION'
}

/** A queue left out here has to be served by somebody else; that is easily forgotten. */
function warnOfUnserved(app: App, queues: readonly string[] | undefined, logger: Logger): void {
  if (queues === undefined) return
  const left = [...app.composition.queues.keys()].filter((name) => !queues.includes(name))
  if (left.length > 0)
    logger.warn(`this worker does not serve ${left.join(', ')}: another one has to`, { unserved: left })
}

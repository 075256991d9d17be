import { defineApp, defineJob } from 'holdfast'
import { Pool } from 'pg'
import {
  type Adapter,
  type AdapterSettings,
  type JobInput,
  jobInput,
  range,
  type WorkerSettings,
} from './adapter.ts'

const QUEUE = 'bench'
const SCHEMA = 'holdfast'

/** The product as built in dist/, with its default settings: history, fencing, validation and events included. */
export function holdfast({ url }: AdapterSettings): Adapter {
  const pool = new Pool({ connectionString: url, max: 2 })
  pool.on('error', () => {})
  let settings: WorkerSettings | undefined
  const job = defineJob({
    name: 'bench',
    queue: QUEUE,
    input: jobInputSchema,
    idempotent: true,
    handler: (_ctx, input) => settings?.onRun(input),
  })
  const app = defineApp({
    name: 'bench',
    database: url,
    schema: SCHEMA,
    jobs: [job],
    queues: { [QUEUE]: {} },
  })

  return {
    async setup() {
      await app.migrate()
    },
    async open() {
      await pool.query('select 1')
    },
    async enqueueOne(n) {
      await app.enqueue(job, jobInput(n))
    },
    async enqueueWith(client, n) {
      await app.enqueue(job, jobInput(n), { tx: client })
    },
    async enqueueMany(from, count, runAt) {
      const at = runAt && { runAt }
      await app.enqueueMany(range(from, count).map((n) => ({ job, input: jobInput(n), ...at })))
    },
    async startWorker(worker: WorkerSettings) {
      settings = worker
      const running = app.worker({ concurrency: { [QUEUE]: worker.concurrency } })
      await running.start()
      return running
    },
    async counts() {
      const { rows } = await pool.query<{ unfinished: number; finished: number }>(
        `select count(*) filter (where state in ('available', 'executing', 'retryable'))::int unfinished,
                count(*) filter (where state = 'completed')::int finished
         from ${SCHEMA}.jobs`,
      )
      return rows[0] ?? { unfinished: 0, finished: 0 }
    },
    async close() {
      await app.close()
      await pool.end()
    },
  }
}

/** A Standard Schema written by hand, so that no schema library's cost is measured as ours. */
const jobInputSchema = {
  '~standard': {
    version: 1,
    vendor: 'holdfast-bench',
    validate: (value: unknown) =>
      isJobInput(value) ? { value } : { issues: [{ message: 'n and check must be numbers' }] },
  },
} as const

function isJobInput(value: unknown): value is JobInput {
  return (
    typeof value === 'object' &&
    value !== null &&
    'n' in value &&
    'check' in value &&
    typeof value.n === 'number' &&
    typeof value.check === 'number'
  )
}

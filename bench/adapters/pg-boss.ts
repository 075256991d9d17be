import { Pool } from 'pg'
import { type ConstructorOptions, type Db, PgBoss, type WorkOptions } from 'pg-boss'
import {
  type Adapter,
  type AdapterSettings,
  type Counts,
  type JobInput,
  jobInput,
  range,
  type WorkerSettings,
} from './adapter.ts'

const QUEUE = 'bench'

/**
 * pg-boss 12. `best` for rate: big batches fetched in a burst, no NOTIFY (which halves its enqueue rate); for delay:
 * NOTIFY, and small batches. Its default fetches one job every two seconds, so it has no part in drains.
 */
export function pgBoss({ url, config, purpose, callers }: AdapterSettings): Adapter {
  const best = config === 'best'
  const notify = best && purpose === 'latency'
  const pool = new Pool({ connectionString: url, max: 2 })
  pool.on('error', () => {})
  const boss = new PgBoss({
    connectionString: url,
    ...(best ? { max: Math.max(10, Math.min(callers, 20)) } : {}),
    useListenNotify: notify,
    // Enqueues queue for its pool where it cannot keep up: a long delay to measure, not a breakdown.
    connectionTimeoutMillis: 120_000,
  } satisfies ConstructorOptions)
  boss.on('error', () => {})

  return {
    async setup() {
      await boss.start()
      await boss.createQueue(QUEUE, { notify })
    },
    async open() {
      await boss.start()
    },
    async enqueueOne(n) {
      await boss.send(QUEUE, jobInput(n))
    },
    async enqueueWith(client, n) {
      const db: Db = { executeSql: (text, values) => client.query(text, values) }
      await boss.send(QUEUE, jobInput(n), { db })
    },
    async enqueueMany(from, count, runAt) {
      const startAfter = runAt && { startAfter: runAt }
      await boss.insert(
        QUEUE,
        range(from, count).map((n) => ({ data: jobInput(n), ...startAfter })),
      )
    },
    async startWorker({ concurrency, onRun }: WorkerSettings) {
      await boss.work<JobInput>(QUEUE, workOptions(config, purpose, concurrency), async (jobs) => {
        for (const job of jobs) onRun(job.data)
      })
      return { stop: () => boss.stop({ graceful: true, close: false, timeout: 20_000 }) }
    },
    async counts(): Promise<Counts> {
      const { rows } = await pool.query<{ unfinished: number; finished: number }>(
        `select count(*) filter (where state < 'completed' and start_after <= now())::int unfinished,
                count(*) filter (where state = 'completed')::int finished
         from pgboss.job where name = $1`,
        [QUEUE],
      )
      return rows[0] ?? { unfinished: 0, finished: 0 }
    },
    async close() {
      await boss.stop({ graceful: false, timeout: 1_000 })
      await pool.end()
    },
  }
}

function workOptions(
  config: AdapterSettings['config'],
  purpose: AdapterSettings['purpose'],
  concurrency: number,
): WorkOptions {
  if (config === 'default') return { localConcurrency: concurrency }
  if (purpose === 'latency') {
    return { localConcurrency: 2, batchSize: 500, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5 }
  }
  return {
    localConcurrency: Math.min(concurrency, 2),
    batchSize: 1_000,
    burstWhenBatchFull: true,
    pollingIntervalSeconds: 0.5,
  }
}

import fs from 'node:fs'
import { Absurd } from 'absurd-sdk'
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

/**
 * Absurd 0.5. Its schema is not in the npm package: `absurdctl` (PyPI) installs it. We read the same file,
 * `sql/absurd.sql` of its repository at tag 0.5.0, from the path in BENCH_ABSURD_SQL. It has no bulk call.
 */
export function absurd({ url, config, purpose, callers }: AdapterSettings): Adapter {
  const best = config === 'best'
  const pool = new Pool({ connectionString: url, max: Math.max(10, Math.min(callers, 20)) })
  pool.on('error', () => {})
  const app = new Absurd({ db: pool, queueName: QUEUE })

  return {
    async setup() {
      const file = process.env['BENCH_ABSURD_SQL']
      if (file === undefined) throw new Error('BENCH_ABSURD_SQL does not name the schema of Absurd')
      await pool.query(fs.readFileSync(file, 'utf8'))
      await app.createQueue(QUEUE)
    },
    async open() {
      await pool.query('select 1')
    },
    async enqueueOne(n) {
      await app.spawn('bench', jobInput(n), { queue: QUEUE })
    },
    async enqueueWith(client, n) {
      await app.bindToConnection(client).spawn('bench', jobInput(n), { queue: QUEUE })
    },
    async enqueueMany(from, count, runAt) {
      if (runAt) throw new Error('Absurd has no enqueue for later')
      await Promise.all(range(from, count).map((n) => app.spawn('bench', jobInput(n), { queue: QUEUE })))
    },
    async startWorker({ concurrency, onRun }: WorkerSettings) {
      app.registerTask<JobInput, null>({ name: 'bench' }, async (input) => {
        onRun(input)
        return null
      })
      const pollInterval = best && purpose === 'latency' ? 0.015 : 0.25
      const worker = await app.startWorker({ concurrency, pollInterval })
      return { stop: () => worker.close() }
    },
    async counts() {
      const { rows } = await pool.query<{ unfinished: number; finished: number }>(
        `select count(*) filter (where state not in ('completed', 'failed', 'cancelled'))::int unfinished,
                count(*) filter (where state = 'completed')::int finished
         from absurd.t_${QUEUE}`,
      )
      return rows[0] ?? { unfinished: 0, finished: 0 }
    },
    async close() {
      await app.close()
      await pool.end()
    },
  }
}

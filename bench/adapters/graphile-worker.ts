import { Logger, makeWorkerUtils, type RunnerOptions, run, type WorkerUtils } from 'graphile-worker'
import { Pool } from 'pg'
import {
  type Adapter,
  type AdapterSettings,
  type Counts,
  jobInput,
  range,
  type WorkerSettings,
} from './adapter.ts'

const silent = new Logger(() => () => {})

/**
 * graphile-worker 0.18. `best` follows https://worker.graphile.org/docs/performance: a local queue of 2 000 and
 * batched completion; and its tables are analyzed once they hold jobs, without which its insert plans badly.
 */
export function graphileWorker({ url, config, callers }: AdapterSettings): Adapter {
  const best = config === 'best'
  const pool = new Pool({ connectionString: url, max: best ? Math.max(10, Math.min(callers, 20)) : 10 })
  pool.on('error', () => {})
  let utils: WorkerUtils | undefined
  const open = async () => {
    utils ??= await makeWorkerUtils({ pgPool: pool, logger: silent })
    return utils
  }

  return {
    async setup() {
      await (await open()).migrate()
    },
    async open() {
      await open()
    },
    async warmedUp() {
      if (best) await pool.query('analyze')
    },
    async enqueueOne(n) {
      await (await open()).addJob('bench', jobInput(n))
    },
    async enqueueWith(client, n) {
      await client.query({
        name: 'add',
        text: 'select graphile_worker.add_job($1, $2::json)',
        values: ['bench', JSON.stringify(jobInput(n))],
      })
    },
    async enqueueMany(from, count, runAt) {
      const at = runAt && { runAt }
      const jobs = range(from, count).map((n) => ({ identifier: 'bench', payload: jobInput(n), ...at }))
      await (await open()).addJobs(jobs)
    },
    async startWorker({ concurrency, onRun }: WorkerSettings) {
      const tuned: Partial<RunnerOptions> = {
        preset: { worker: { localQueue: { size: 2_000 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
        maxPoolSize: Math.max(10, Math.min(concurrency + 2, 20)),
      }
      const runner = await run({
        connectionString: url,
        concurrency,
        logger: silent,
        noHandleSignals: true,
        taskList: { bench: async (payload) => onRun(payload) },
        ...(best ? tuned : {}),
      })
      return { stop: () => runner.stop() }
    },
    async counts(): Promise<Counts> {
      const { rows } = await pool.query<{ n: number }>(
        'select count(*)::int n from graphile_worker._private_jobs where run_at <= now()',
      )
      return { unfinished: rows[0]?.n ?? 0, finished: undefined }
    },
    async close() {
      await utils?.release()
      await pool.end()
    },
  }
}

import { Queue, Worker } from 'bullmq'
import {
  type Adapter,
  type AdapterSettings,
  type JobInput,
  jobInput,
  range,
  type WorkerSettings,
} from './adapter.ts'

/** BullMQ 6 on Redis; finished jobs are kept, as is its default. How durable it is is the server's setting. */
export function bullmq({ url }: AdapterSettings): Adapter {
  const { hostname, port } = new URL(url)
  const connection = { host: hostname, port: Number(port), maxRetriesPerRequest: null }
  const queue = new Queue<JobInput>('bench', { connection })
  queue.on('error', () => {})

  return {
    async setup() {
      // Redis was emptied, and BullMQ makes what it needs.
    },
    async open() {
      await queue.waitUntilReady()
    },
    async enqueueOne(n) {
      await queue.add('bench', jobInput(n))
    },
    async enqueueMany(from, count, runAt) {
      const opts = runAt && { opts: { delay: runAt.getTime() - Date.now() } }
      await queue.addBulk(range(from, count).map((n) => ({ name: 'bench', data: jobInput(n), ...opts })))
    },
    async startWorker({ concurrency, onRun }: WorkerSettings) {
      const worker = new Worker<JobInput>('bench', async (job) => onRun(job.data), {
        connection,
        concurrency,
      })
      worker.on('error', () => {})
      await worker.waitUntilReady()
      return { stop: () => worker.close() }
    },
    async counts() {
      const counts = await queue.getJobCounts('waiting', 'active', 'prioritized', 'completed')
      const of = (state: string) => counts[state] ?? 0
      return { unfinished: of('waiting') + of('active') + of('prioritized'), finished: of('completed') }
    },
    async close() {
      await queue.close()
    },
  }
}

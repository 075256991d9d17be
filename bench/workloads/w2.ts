import { checkCounts } from '../measure/ledger.ts'
import { costs, type Workload } from './workload.ts'

const BATCH = 1_000
const MAX_MS = 8_000

export const w2: Workload = {
  id: 'W2',
  title: 'bulk enqueue in batches of 1,000, one call after the other',
  contenders: ['holdfast', 'raw', 'graphile-worker', 'pg-boss', 'bullmq'],
  more: ['bullmq-everysec', 'absurd'],
  exclusions: 'Absurd has no bulk call (--all measures 1,000 concurrent single calls in its place).',
  ratioOf: 'jobs/s',
  async run(bench, contender) {
    const store = await bench.createStore(contender, 'throughput')
    const producer = await bench.startChild(store)
    try {
      await producer.ask('open')
      await producer.ask('bulkFor', 0, 5 * BATCH, BATCH, Number.MAX_SAFE_INTEGER)
      await bench.settleDown()
      const spent = await bench.watch(store)
      const bulk = await producer.ask('bulkFor', 5 * BATCH, bench.scale.bulkJobs, BATCH, MAX_MS)
      const used = await spent()
      const { unfinished } = await producer.ask('counts')
      checkCounts(contender.name, unfinished, 5 * BATCH + bulk.jobs)
      const { peakMegabytes } = await producer.ask('usage')
      const figures = {
        'jobs/s': bulk.jobs / (bulk.elapsedMs / 1_000),
        ...costs(bulk.jobs, bulk.cpuSeconds / bulk.jobs, used),
        'peak MB': peakMegabytes,
      }
      return [{ point: 'batches of 1,000', figures }]
    } finally {
      await producer.close()
      await bench.dropStore(store)
    }
  },
}

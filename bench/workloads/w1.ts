import type { Contender } from '../adapters/contenders.ts'
import type { Bench } from '../measure/bench.ts'
import { checkCounts } from '../measure/ledger.ts'
import { costs, type Sample, type Workload } from './workload.ts'

const POINTS = [
  { point: '10 callers', callers: 10, transaction: 'none' },
  { point: '100 callers', callers: 100, transaction: 'none' },
  { point: '10 callers, bare transaction', callers: 10, transaction: 'bare' },
  { point: '10 callers, own transaction', callers: 10, transaction: 'business' },
] as const

/** Single enqueues, each acknowledged after its commit. For a fixed time: a fixed number suits only one speed. */
export const w1: Workload = {
  id: 'W1',
  title: 'single enqueues by concurrent callers, each acknowledged after its commit',
  contenders: ['holdfast', 'raw', 'graphile-worker', 'pg-boss', 'absurd', 'bullmq'],
  more: ['raw-plain', 'graphile-worker-default', 'pg-boss-default', 'bullmq-everysec'],
  exclusions: 'BullMQ has no enqueue inside a PostgreSQL transaction.',
  ratioOf: 'jobs/s',
  points: POINTS.map(({ point }) => point),
  async run(bench, contender, name) {
    const point = POINTS.find((one) => one.point === name)
    if (point === undefined || (point.transaction !== 'none' && contender.server !== 'postgres')) return []
    return [await enqueueSingles(bench, contender, point)]
  },
}

async function enqueueSingles(
  bench: Bench,
  contender: Contender,
  settings: (typeof POINTS)[number],
): Promise<Sample> {
  const { point, callers, transaction } = settings
  const { singlesMs, warmUpJobs } = bench.scale
  const store = await bench.createStore(contender, 'throughput')
  const producer = await bench.startChild(store, callers)
  try {
    await producer.ask('open')
    await producer.ask('warmUp', 0, warmUpJobs, transaction)
    await bench.settleDown()
    const spent = await bench.watch(store)
    const { jobs, elapsedMs, cpuSeconds } = await producer.ask(
      'singlesFor',
      warmUpJobs,
      singlesMs,
      transaction,
    )
    const used = await spent()
    const { unfinished } = await producer.ask('counts')
    // The callers of the warm-up may overshoot by their last calls; each acknowledged job must be there.
    checkCounts(`${contender.name}, ${point}`, unfinished, warmUpJobs + jobs)
    const { peakMegabytes } = await producer.ask('usage')
    return {
      point,
      figures: {
        'jobs/s': jobs / (elapsedMs / 1_000),
        ...costs(jobs, cpuSeconds / jobs, used),
        'peak MB': peakMegabytes,
      },
    }
  } finally {
    await producer.close()
    await bench.dropStore(store)
  }
}

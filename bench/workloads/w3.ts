import { drainPoint, nameOf } from './drain-point.ts'
import type { Workload } from './workload.ts'

const CONCURRENCIES = [1, 10, 50]

export const w3: Workload = {
  id: 'W3',
  title: 'drain of no-op jobs by one worker process',
  contenders: ['holdfast', 'raw', 'graphile-worker', 'pg-boss', 'absurd', 'bullmq'],
  more: ['graphile-worker-default', 'bullmq-everysec'],
  exclusions:
    'pg-boss by default fetches one job every 2 s, which is no rate; slow contenders drain fewer jobs.',
  ratioOf: 'jobs/s',
  points: CONCURRENCIES.map(nameOf),
  async run(bench, contender, point) {
    const concurrency = CONCURRENCIES.find((one) => nameOf(one) === point)
    return concurrency === undefined
      ? []
      : [await drainPoint(bench, contender, { processes: 1, concurrency })]
  },
}

import { drainPoint } from './drain-point.ts'
import type { Sample, Workload } from './workload.ts'

const CONCURRENCIES = [1, 10, 50]

export const w3: Workload = {
  id: 'W3',
  title: 'drain of no-op jobs by one worker process',
  contenders: ['holdfast', 'raw', 'graphile-worker', 'pg-boss', 'absurd', 'bullmq'],
  more: ['graphile-worker-default', 'bullmq-everysec'],
  exclusions:
    'pg-boss by default fetches one job every 2 s, which is no rate; slow contenders drain fewer jobs.',
  ratioOf: 'jobs/s',
  async run(bench, contender) {
    const samples: Sample[] = []
    for (const concurrency of CONCURRENCIES) {
      samples.push(await drainPoint(bench, contender, { processes: 1, concurrency }))
    }
    return samples
  },
}

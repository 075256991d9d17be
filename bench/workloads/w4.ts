import { drainPoint } from './drain-point.ts'
import type { Workload } from './workload.ts'

export const w4: Workload = {
  id: 'W4',
  title: 'drain of no-op jobs by two worker processes',
  contenders: ['holdfast', 'raw', 'graphile-worker', 'pg-boss', 'absurd', 'bullmq'],
  more: ['graphile-worker-default', 'bullmq-everysec'],
  exclusions: 'As in W3.',
  ratioOf: 'jobs/s',
  async run(bench, contender) {
    return [await drainPoint(bench, contender, { processes: 2, concurrency: 50 })]
  },
}

import { paced } from './paced.ts'
import type { Workload } from './workload.ts'

export const w6: Workload = {
  id: 'W6',
  title: 'steady 1,000 single enqueues/s while working: enqueue call to start of the handler',
  contenders: ['holdfast', 'raw', 'graphile-worker', 'pg-boss', 'absurd', 'bullmq'],
  more: ['graphile-worker-default', 'bullmq-everysec'],
  exclusions: 'pg-boss by default cannot keep up.',
  ratioOf: 'p99 ms',
  async run(bench, contender) {
    return [await paced(bench, contender, { point: '1,000/s', perSecond: 1_000, from: 'call' })]
  },
}

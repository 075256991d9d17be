import { paced } from './paced.ts'
import type { Workload } from './workload.ts'

export const w5: Workload = {
  id: 'W5',
  title: 'idle system, one enqueue every 50 ms: acknowledged commit to start of the handler',
  contenders: ['holdfast', 'raw', 'graphile-worker', 'pg-boss', 'bullmq'],
  more: ['graphile-worker-default', 'absurd', 'bullmq-everysec'],
  exclusions: 'pg-boss by default polls every 2 s and cannot keep up.',
  ratioOf: 'p50 ms',
  async run(bench, contender) {
    return [await paced(bench, contender, { point: '20/s', perSecond: 20, from: 'acknowledgement' })]
  },
}

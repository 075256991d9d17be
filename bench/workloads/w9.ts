import type { Child } from '../measure/child-process.ts'
import type { Workload } from './workload.ts'

const PROCESSES = 20
const STARTED_AT_ONCE = 4
/** Starting up is not idling. */
const CALM_MS = 6_000

export const w9: Workload = {
  id: 'W9',
  title: '20 idle worker processes',
  contenders: ['holdfast', 'raw', 'graphile-worker'],
  more: ['pg-boss', 'graphile-worker-default', 'pg-boss-default', 'absurd'],
  exclusions: 'Redis has no statements to compare. One round.',
  ratioOf: 'statements/s',
  maxRounds: 1,
  async run(bench, contender) {
    const store = await bench.createStore(contender, 'latency')
    const workers: Child[] = []
    try {
      while (workers.length < PROCESSES) {
        const started = await Promise.all(
          Array.from({ length: STARTED_AT_ONCE }, () => bench.startChild(store)),
        )
        workers.push(...started)
        for (const worker of started) {
          await worker.ask('open')
          await worker.ask('startWorker', 10, 0, 'none')
        }
      }
      await new Promise((resolve) => setTimeout(resolve, CALM_MS))
      const bytesBefore = await bench.databaseBytes(store)
      const cpuBefore = await cpuOf(workers)
      const spent = await bench.watch(store)
      await new Promise((resolve) => setTimeout(resolve, bench.scale.idleMs))
      const used = await spent()
      const cpuSeconds = (await cpuOf(workers)) - cpuBefore
      const usages = await Promise.all(workers.map((worker) => worker.ask('usage')))
      const seconds = bench.scale.idleMs / 1_000
      const figures = {
        'statements/s': used.statements / seconds,
        'statements/s each': used.statements / seconds / PROCESSES,
        'client CPU %': (cpuSeconds / seconds) * 100,
        'server CPU %': (used.cpuSeconds / seconds) * 100,
        'WAL B/s': used.walBytes / seconds,
        'growth kB': ((await bench.databaseBytes(store)) - bytesBefore) / 1_024,
        'peak MB': Math.max(...usages.map(({ peakMegabytes }) => peakMegabytes)),
      }
      return [{ point: `for ${seconds} s`, figures }]
    } finally {
      await Promise.all(workers.map((worker) => worker.close()))
      await bench.dropStore(store)
    }
  },
}

async function cpuOf(workers: readonly Child[]): Promise<number> {
  const usages = await Promise.all(workers.map((worker) => worker.ask('usage')))
  return usages.reduce((sum, { cpuSeconds }) => sum + cpuSeconds, 0)
}

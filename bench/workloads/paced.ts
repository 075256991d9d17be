import type { Contender } from '../adapters/contenders.ts'
import { type Bench, waitForRuns } from '../measure/bench.ts'
import { checkCounts, Ledger } from '../measure/ledger.ts'
import { percentile } from '../measure/statistics.ts'
import { costs, type Sample } from './workload.ts'

export interface Pace {
  readonly point: string
  readonly perSecond: number
  /** A delay counts from the enqueue call, or from its acknowledgement (the first proof of its commit). */
  readonly from: 'call' | 'acknowledgement'
}

/** Enqueues at a steady pace in one process while another works; both read one clock. */
export async function paced(bench: Bench, contender: Contender, pace: Pace): Promise<Sample> {
  const store = await bench.createStore(contender, 'latency')
  const [producer, worker] = await Promise.all([bench.startChild(store), bench.startChild(store)])
  try {
    const warmUp = 200
    const jobs = Math.floor((pace.perSecond * bench.scale.pacedMs) / 1_000)
    await Promise.all([producer.ask('open'), worker.ask('open')])
    const ledger = new Ledger(warmUp + jobs)
    await worker.ask('startWorker', 10, ledger.capacity, 'all')
    await producer.ask('pace', 0, 200, (warmUp / 200) * 1_000)
    await waitForRuns([worker], warmUp)
    const clientCpuBefore = (await worker.ask('usage')).cpuSeconds
    const spent = await bench.watch(store)
    const sent = await producer.ask('pace', warmUp, pace.perSecond, bench.scale.pacedMs)
    await waitForRuns([worker], warmUp + jobs)
    const clientCpu = (await worker.ask('usage')).cpuSeconds - clientCpuBefore + sent.cpuSeconds
    const used = await spent()
    const runs = await worker.ask('runs')
    const { peakMegabytes } = await worker.ask('usage')
    await worker.ask('stopWorker')
    ledger.add(runs)
    ledger.checkComplete(contender.name, warmUp + jobs)
    checkCounts(contender.name, (await worker.ask('counts')).unfinished, 0)
    const since = pace.from === 'call' ? sent.calledAt : sent.ackedAt
    const delaysMs = [...since].map((at, index) => (runs.startedAt[warmUp + index] ?? Number.NaN) - at)
    return {
      point: pace.point,
      delaysMs,
      figures: {
        'p50 ms': percentile(delaysMs, 50),
        'p99 ms': percentile(delaysMs, 99),
        ...costs(jobs, clientCpu / jobs, used),
        'peak MB': peakMegabytes,
      },
    }
  } finally {
    await Promise.all([producer.close(), worker.close()])
    await bench.dropStore(store)
  }
}

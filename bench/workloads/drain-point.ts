import type { Contender } from '../adapters/contenders.ts'
import { type Bench, drain, fill } from '../measure/bench.ts'
import { checkCounts, Ledger } from '../measure/ledger.ts'
import { costs, type Sample, scaled } from './workload.ts'

export interface DrainPoint {
  readonly processes: number
  readonly concurrency: number
}

export function nameOf(concurrency: number): string {
  return `concurrency ${concurrency}`
}

/** Fills an empty store, drains it, and makes sure that every job ran once and is finished. */
export async function drainPoint(bench: Bench, contender: Contender, point: DrainPoint): Promise<Sample> {
  const { processes, concurrency } = point
  const jobs = scaled(bench.scale.drainJobs, contender)
  const store = await bench.createStore(contender, 'throughput')
  try {
    await bench.settleDown()
    await fill(bench, store, 0, jobs)
    const ledger = new Ledger(jobs)
    const drained = await drain(bench, store, { processes, concurrency, jobs, ledger })
    ledger.checkComplete(contender.name, jobs)
    checkCounts(contender.name, drained.counts.unfinished, 0)
    if (drained.counts.finished !== undefined) {
      checkCounts(`${contender.name} (not recorded as finished)`, jobs - drained.counts.finished, 0)
    }
    return {
      point: nameOf(concurrency),
      figures: {
        'jobs/s': drained.jobsPerSecond,
        ...costs(jobs, drained.clientCpuPerJob, drained.spent),
        'peak MB': drained.peakMegabytes,
      },
    }
  } finally {
    await bench.dropStore(store)
  }
}

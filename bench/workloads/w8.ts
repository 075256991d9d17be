import type { Contender } from '../adapters/contenders.ts'
import { sharedNow } from '../child/clock.ts'
import { SAMPLED, type SaturationResult } from '../child/protocol.ts'
import { type Bench, waitForRuns } from '../measure/bench.ts'
import type { Child } from '../measure/child-process.ts'
import { checkCounts, Ledger } from '../measure/ledger.ts'
import { percentile } from '../measure/statistics.ts'
import type { Sample, Workload } from './workload.ts'

const BATCH = 500
const OUTSTANDING = 3_000
const WARM_UP_MS = 3_000
const HELD = 'snapshot held'
/** What the same load does to the same machine by itself. */
const CONTROL = 'none held'
/** Room for what the fastest contender enqueues in the longest run. */
const CAPACITY = 32_000_000

export const w8: Workload = {
  id: 'W8',
  title: 'steady enqueue and drain while another connection holds a REPEATABLE READ snapshot',
  contenders: ['holdfast', 'graphile-worker'],
  more: ['raw', 'raw-no-hint', 'pg-boss'],
  exclusions: 'Redis has no snapshots; Absurd is left out for time.',
  ratioOf: 'end / before',
  points: [HELD, CONTROL],
  async run(bench, contender, point) {
    // For time, only ours has the control.
    if (point === CONTROL && contender.name !== 'holdfast') return []
    return [await saturate(bench, contender, point)]
  },
}

async function saturate(bench: Bench, contender: Contender, point: string): Promise<Sample> {
  const { pinnedMs, beforeMs } = bench.scale
  const store = await bench.createStore(contender, 'latency')
  const [producer, worker] = await Promise.all([bench.startChild(store), bench.startChild(store)])
  try {
    await Promise.all([producer.ask('open'), worker.ask('open')])
    const ledger = new Ledger(CAPACITY)
    await worker.ask('startWorker', 50, CAPACITY, 'sampled')
    worker.onProgress = () => void producer.ask('finished', worker.runCount)
    await producer.ask('saturate', 0, BATCH, OUTSTANDING)
    await sleep(WARM_UP_MS)
    const before = await rateOver(worker, beforeMs)
    const release = point === HELD ? await bench.pinSnapshot(store) : undefined
    const windowMs = Math.min(beforeMs, pinnedMs / 3)
    await sleep(pinnedMs - windowMs)
    const end = await rateOver(worker, windowMs)
    await release?.()
    const sent = await producer.ask('endSaturation')
    await waitForRuns([worker], sent.jobs)
    await worker.ask('stopWorker')
    const runs = await worker.ask('runs')
    ledger.add(runs)
    ledger.checkComplete(contender.name, sent.jobs)
    checkCounts(contender.name, (await worker.ask('counts')).unfinished, 0)
    return {
      point,
      figures: {
        'jobs/s before': before.jobsPerSecond,
        'jobs/s at the end': end.jobsPerSecond,
        'end / before': end.jobsPerSecond / before.jobsPerSecond,
        ...delays('before', sent, runs.startedAt, before),
        ...delays('at the end', sent, runs.startedAt, end),
      },
    }
  } finally {
    await Promise.all([producer.close(), worker.close()])
    await bench.dropStore(store)
  }
}

interface Window {
  readonly jobsPerSecond: number
  readonly fromMs: number
  readonly toMs: number
}

async function rateOver(worker: Child, ms: number): Promise<Window> {
  const read = () => ({ atMs: sharedNow(), count: worker.runCount })
  const from = read()
  await sleep(ms)
  const to = read()
  return {
    jobsPerSecond: ((to.count - from.count) / (to.atMs - from.atMs)) * 1_000,
    fromMs: from.atMs,
    toMs: to.atMs,
  }
}

/** Acknowledgement to start, of the sampled jobs that started within the window. */
function delays(when: string, sent: SaturationResult, startedAt: Float64Array, window: Window) {
  const found: number[] = []
  for (const [index, ackedAt] of sent.ackedAt.entries()) {
    const started = startedAt[index] ?? 0
    if (index * SAMPLED < sent.jobs && started >= window.fromMs && started < window.toMs)
      found.push(started - ackedAt)
  }
  return { [`p50 ms ${when}`]: percentile(found, 50), [`p99 ms ${when}`]: percentile(found, 99) }
}

function sleep(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}

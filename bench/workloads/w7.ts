import type { Contender } from '../adapters/contenders.ts'
import { type Bench, drain, fill, type Store } from '../measure/bench.ts'
import { checkCounts, Ledger } from '../measure/ledger.ts'
import { costs, type Sample, scaled, type Workload } from './workload.ts'

const STATES = ['empty', 'finished kept', 'scheduled for tomorrow', 'ready'] as const
type State = (typeof STATES)[number]

const ROUNDS = 2
/** Drains of each store in a round, in turn: one takes a second, in which a shared machine says little. */
const CYCLES = 4

interface Prepared {
  readonly store: Store
  readonly ledger: Ledger
  /** Jobs enqueued so far, without those for tomorrow. */
  enqueued: number
  readonly peakMegabytes: number
}

const prepared = new Map<string, Prepared>()

export const w7: Workload = {
  id: 'W7',
  title: 'W3 at concurrency 50 with a million jobs finished, scheduled or ready beside it',
  contenders: ['holdfast', 'raw', 'graphile-worker'],
  more: ['pg-boss'],
  exclusions:
    'Redis keeps all in memory, Absurd would take ten minutes to fill; graphile-worker keeps no finished jobs. Two rounds.',
  ratioOf: 'of empty',
  maxRounds: ROUNDS,
  async run(bench, contender) {
    const samples: Sample[] = []
    for (let cycle = 0; cycle < CYCLES; cycle += 1) samples.push(...(await oneCycle(bench, contender, cycle)))
    return samples
  },
}

/** Drains each store once, every cycle beginning with another: none is always the one after the longest rest. */
async function oneCycle(bench: Bench, contender: Contender, cycle: number): Promise<readonly Sample[]> {
  const first = cycle % STATES.length
  const samples: Sample[] = []
  for (const state of [...STATES.slice(first), ...STATES.slice(0, first)]) {
    samples.push(await drainBeside(bench, contender, state))
  }
  const rate = (sample: Sample | undefined) => sample?.figures['jobs/s'] ?? Number.NaN
  const empty = rate(samples.find(({ point }) => point === 'empty'))
  return samples.map((sample) => ({
    ...sample,
    figures: { 'of empty': rate(sample) / empty, ...sample.figures },
  }))
}

async function drainBeside(bench: Bench, contender: Contender, state: State): Promise<Sample> {
  const key = `${contender.name} ${state}`
  const place = prepared.get(key) ?? (await prepare(bench, contender, state))
  prepared.set(key, place)
  const jobs = scaled(bench.scale.drainJobs, contender)
  await fill(bench, place.store, place.enqueued, jobs)
  place.enqueued += jobs
  const drained = await drain(bench, place.store, {
    processes: 1,
    concurrency: 50,
    jobs,
    ledger: place.ledger,
  })
  place.ledger.checkSound(key)
  checkCounts(key, drained.counts.unfinished, place.enqueued - place.ledger.ran)
  if (state !== 'ready') checkCounts(key, place.enqueued - place.ledger.ran, 0)
  return {
    point: state,
    figures: {
      'jobs/s': drained.jobsPerSecond,
      ...costs(drained.jobs, drained.clientCpuPerJob, drained.spent),
      'peak MB': drained.peakMegabytes,
      ...(state === 'finished kept' ? { 'peak MB over the backlog': place.peakMegabytes } : {}),
    },
  }
}

async function prepare(bench: Bench, contender: Contender, state: State): Promise<Prepared> {
  const jobs = state === 'empty' ? 0 : scaled(bench.scale.backlogJobs, contender)
  const capacity = jobs + ROUNDS * CYCLES * scaled(bench.scale.drainJobs, contender)
  const store = await bench.createStore(contender, 'throughput', state.replaceAll(' ', '_'))
  const ledger = new Ledger(capacity)
  await bench.settleDown()
  if (state === 'scheduled for tomorrow') {
    // Numbered past the ledger, so that one which ran today would count as wrong.
    await fill(bench, store, capacity, jobs, true)
    return { store, ledger, enqueued: 0, peakMegabytes: Number.NaN }
  }
  if (jobs > 0) await fill(bench, store, 0, jobs)
  if (state !== 'finished kept') return { store, ledger, enqueued: jobs, peakMegabytes: Number.NaN }
  const { peakMegabytes } = await drain(bench, store, { processes: 1, concurrency: 50, jobs, ledger })
  ledger.checkComplete(`${contender.name} ${state}`, jobs)
  return { store, ledger, enqueued: jobs, peakMegabytes }
}

import type { Contender } from '../adapters/contenders.ts'
import type { Bench, Spent } from '../measure/bench.ts'

/** Figures of one contender at one point of a workload in one round. Names of figures carry their units. */
export interface Sample {
  readonly point: string
  readonly figures: Figures
  /** Delays in ms, pooled over the rounds before percentiles are taken. */
  readonly delaysMs?: readonly number[]
}

export type Figures = Readonly<Record<string, number>>

export interface Workload {
  readonly id: string
  readonly title: string
  /** Contenders measured by default, and those that --all adds. */
  readonly contenders: readonly string[]
  readonly more: readonly string[]
  /** Why other contenders have no part in it. */
  readonly exclusions: string
  /** The figure that ratios are taken of. */
  readonly ratioOf: string
  /** At most this many rounds, for workloads that take minutes. */
  readonly maxRounds?: number
  /** Measured one by one, all contenders in turn at each, so that what is compared was measured close together. */
  readonly points?: readonly string[]
  /** Measures `contender` once, at one of the `points` if there are any. May keep stores from one round to the next. */
  run(bench: Bench, contender: Contender, point: string): Promise<readonly Sample[]>
}

/** The figures beside each rate. */
export function costs(jobs: number, clientCpuPerJob: number, spent: Spent): Figures {
  return {
    'client CPU s/10k': clientCpuPerJob * 10_000,
    'server CPU s/10k': (spent.cpuSeconds / jobs) * 10_000,
    'WAL B/job': spent.walBytes / jobs,
    'statements/job': spent.statements / jobs,
  }
}

export function scaled(jobs: number, contender: Contender): number {
  return Math.max(1_000, Math.round((jobs * contender.share) / 1_000) * 1_000)
}

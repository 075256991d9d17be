import type { ClientBase } from 'pg'

/** What every job of a run carries. `check` is a function of `n`, so that a mixed-up input is seen. */
export interface JobInput {
  readonly n: number
  readonly check: number
}

export function jobInput(n: number): JobInput {
  return { n, check: checkOf(n) }
}

export function checkOf(n: number): number {
  return (n * 31 + 7) % 1_000_003
}

/** What a workload is after: peers have one best setting for rate and another for delay. */
export type Purpose = 'throughput' | 'latency'

export interface AdapterSettings {
  /** Address of the contender's own database, or of its Redis. */
  readonly url: string
  readonly config: Config
  readonly purpose: Purpose
  /** How many callers enqueue at once; adapters size their pools by it. */
  readonly callers: number
}

/**
 * `default`: as after the first page of the contender's documentation. `best`: the best documented setting.
 * The others are variants of `raw`: no coalescing of enqueues, no low-water hint.
 */
export type Config = 'default' | 'best' | 'plain' | 'no-hint'

export interface WorkerSettings {
  readonly concurrency: number
  readonly onRun: (input: unknown) => void
}

export interface RunningWorker {
  /** Ends the worker once every job that ran is settled. */
  stop(): Promise<void>
}

/** Jobs by what the contender's tables say of them; `finished` is undefined where they are deleted. */
export interface Counts {
  readonly unfinished: number
  readonly finished: number | undefined
}

/** One contender, as little of it as the workloads need. An instance lives in one child process. */
export interface Adapter {
  /** Makes schema and queue in an empty database. Only one process calls it, before all others. */
  setup(): Promise<void>
  /** Connects; called by producers and workers alike before anything else. */
  open(): Promise<void>
  /** Called once after the producer's warm-up, outside what is measured. */
  warmedUp?(): Promise<void>
  /** Resolves once the job is durable, by the contender's own word. */
  enqueueOne(n: number): Promise<void>
  /** Enqueues inside the transaction that `client` has open; absent where the contender cannot. */
  enqueueWith?(client: ClientBase, n: number): Promise<void>
  /** The bulk call, once, for `count` jobs from `from` on; `runAt` puts them off. */
  enqueueMany(from: number, count: number, runAt?: Date): Promise<void>
  startWorker(settings: WorkerSettings): Promise<RunningWorker>
  counts(): Promise<Counts>
  close(): Promise<void>
}

export type AdapterFactory = (settings: AdapterSettings) => Adapter

export function range(from: number, count: number): readonly number[] {
  return Array.from({ length: count }, (_, index) => from + index)
}

import type { Config, Counts, Purpose } from '../adapters/adapter.ts'

/** What each enqueue is alone in: nothing of the caller's, a transaction, or one that writes something of the caller's too. */
export type Transaction = 'none' | 'bare' | 'business'

export interface ChildSetup {
  readonly contender: string
  readonly config: Config
  readonly url: string
  readonly purpose: Purpose
  readonly callers: number
}

/** What a child can be asked to do, and what it answers. */
export interface Commands {
  setup: { args: []; result: void }
  open: { args: []; result: void }
  /** Enqueues `warmUp` jobs one by one, so that code is compiled and connections are open. */
  warmUp: { args: [from: number, jobs: number, transaction: Transaction]; result: void }
  fill: { args: [from: number, jobs: number, batch: number, tomorrow: boolean]; result: BulkResult }
  bulkFor: { args: [from: number, jobs: number, batch: number, maxMs: number]; result: BulkResult }
  singlesFor: { args: [from: number, ms: number, transaction: Transaction]; result: BulkResult }
  /** One enqueue each `1 000 / perSecond` ms, not waiting for the one before. */
  pace: { args: [from: number, perSecond: number, ms: number]; result: PacedResult }
  /** Keeps up to `outstanding` jobs unfinished, until `endSaturation`; needs `finished` told often. */
  saturate: { args: [from: number, batch: number, outstanding: number]; result: void }
  finished: { args: [jobs: number]; result: void }
  endSaturation: { args: []; result: SaturationResult }
  /** The first `warmUp` runs are not counted. */
  startWorker: {
    args: [concurrency: number, capacity: number, timing: Timing, warmUp?: number]
    result: void
  }
  runs: { args: []; result: Runs }
  stopWorker: { args: []; result: void }
  counts: { args: []; result: Counts }
  usage: { args: []; result: Usage }
  close: { args: []; result: void }
}

export type CommandName = keyof Commands

/** Of which jobs a worker notes the start: none, all, or one in `SAMPLED` (the busiest runs have millions). */
export type Timing = 'none' | 'all' | 'sampled'
export const SAMPLED = 64

export interface BulkResult {
  readonly jobs: number
  readonly elapsedMs: number
  readonly cpuSeconds: number
}

/** Instants by job, in the order of `n` from `from` on. */
export interface PacedResult {
  readonly calledAt: Float64Array
  readonly ackedAt: Float64Array
  readonly cpuSeconds: number
}

export interface SaturationResult {
  readonly jobs: number
  /** Instant of acknowledgement of each job with `n % SAMPLED === 0`. */
  readonly ackedAt: Float64Array
}

export interface Runs {
  readonly count: number
  /** Runs without those of the warm-up. */
  readonly counted: number
  readonly wrong: number
  /** How often each job ran, by `n`. */
  readonly times: Uint8Array
  /** Instants of the first and last run that counts. */
  readonly firstAt: number
  readonly lastAt: number
  /** By `n`, or by `n / SAMPLED`; empty if not timed. */
  readonly startedAt: Float64Array
  /** From the first run that counts to now. */
  readonly cpuSeconds: number
}

export interface Usage {
  readonly cpuSeconds: number
  readonly peakMegabytes: number
}

export interface Request {
  readonly id: number
  readonly command: CommandName
  readonly args: readonly unknown[]
}

export type Message =
  | { readonly kind: 'answer'; readonly id: number; readonly result: unknown }
  | { readonly kind: 'failure'; readonly id: number; readonly error: string }
  | { readonly kind: 'progress'; readonly count: number }

import type { Display, Snapshot } from './display.ts'
import type { Counts } from './facts.ts'
import type { MailServers } from './mail-servers.ts'
import type { Order } from './orders.ts'
import type { RunRecord } from './record.ts'
import type { Evidence } from './verdict.ts'

export interface RunOptions {
  readonly orders: readonly Order[]
  /** The same orders as a CSV file. */
  readonly file: string
  readonly seed: number
  /** How fast customers come. */
  readonly ordersPerSecond: number
  /** Share of orders that are rolled back on purpose, 0 to 1. */
  readonly rollbackShare: number
  readonly mailServers: MailServers
  readonly display: Display
  /** Aborts when the run has taken long enough: what is not done by then is counted as lost. */
  readonly signal: AbortSignal
}

/** Where the processes of the shop find the mail servers. */
export function portsOf({ provider, plain, inquiryPort }: MailServers) {
  return { providerPort: provider.port, plainPort: plain.port, inquiryPort }
}

export interface Run {
  readonly evidence: Evidence
  /** Name and version of the database. */
  readonly database: string
}

const REFRESH_EVERY_MS = 200

export interface ProgressOptions {
  readonly run: RunOptions
  readonly record: RunRecord
  readonly readCounts: () => Promise<Counts>
  readonly workers: () => readonly string[]
}

/** Shows progress while `work` runs, and at its end the final state. */
export async function withProgress(options: ProgressOptions, work: () => Promise<void>): Promise<void> {
  const { run, record } = options
  let counts: Counts = { live: 0, completed: 0, rescues: 0 }
  let looking: Promise<void> | undefined

  const look = async () => {
    // Progress is a courtesy: what it cannot read, the verdict will, and complain.
    counts = await options.readCounts().catch(() => counts)
    run.display.update(toSnapshot())
    looking = undefined
  }
  const toSnapshot = (): Snapshot => ({
    orders: run.orders.length,
    confirmed: record.confirmed.size,
    rolledBack: record.rolledBack.size,
    mails: run.mailServers.acceptedCount(),
    completed: counts.completed,
    kills: record.kills.length,
    rescues: counts.rescues,
    refused: record.refused.length,
    workers: options.workers(),
  })

  const timer = setInterval(() => {
    looking ??= look()
  }, REFRESH_EVERY_MS)
  try {
    await work()
  } finally {
    clearInterval(timer)
    await looking
    await look()
  }
}

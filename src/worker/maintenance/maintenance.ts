import type { EventHub } from '../../base/events.ts'
import type { Wakeup } from '../../base/wakeup.ts'
import type { Driver } from '../../driver/driver.ts'
import { type Database, runOne } from '../../driver/operation.ts'
import { lookAhead } from '../../jobs/sql/look-ahead.ts'
import { promoteJobs } from '../../jobs/sql/promote-jobs.ts'
import { rescueJobs } from './rescuer.ts'

export interface MaintenanceOptions {
  readonly driver: Driver
  readonly database: Database
  readonly events: EventHub
  readonly wakeup: Wakeup
  readonly workerId: () => bigint
  readonly jobNames: readonly string[]
  /** Queues to look at for jobs that are ready; none while that would walk over dead rows: the sweeper looks then. */
  readonly queues: () => readonly string[]
  /** Longest wait between two looks: a job whose notification was lost is late by so much at most. */
  readonly maxPollMs: () => number
  /** Jobs became available in these queues. */
  readonly onAvailable: (queues: readonly string[]) => void
  readonly onParked: () => void
  /** Every minute: partitions, retention, the schema's version. */
  readonly upkeep: () => Promise<void>
  readonly onError: (during: string, error: unknown, retryInMs: number) => void
}

const PROMOTE_LIMIT = 1000
/** Between two rounds of promoting: what falls due within it is moved together, and starts at most so late. */
const PROMOTE_PAUSE_MS = 10
/** After a lease may have run out: its owner's renewal may be on its way. */
const EXPIRY_SLACK_MS = 50
/** An enqueue announces what falls due within so long; what falls due later has to be seen by a look before. */
const ANNOUNCED_DUE_MS = 60_000
const UPKEEP_MS = 60_000
const RETRY_MS = 1000

/**
 * Promotes what is due, rescues what is lost, and does the upkeep, on any worker: no leader, since each step
 * takes its rows with `skip locked`. One look tells what is there and when something will be due next, and the loop
 * sleeps exactly until then, `maxPollMs` at most: with every notification lost, all works at that latency. Never rejects; returns when `signal` aborts.
 */
export async function runMaintenance(options: MaintenanceOptions, signal: AbortSignal): Promise<void> {
  let upkeepAtMs = performance.now() + UPKEEP_MS * Math.random()
  while (!signal.aborted) {
    let sleepMs = RETRY_MS
    try {
      sleepMs = await lookAndAct(options)
      if (performance.now() >= upkeepAtMs) {
        upkeepAtMs = performance.now() + UPKEEP_MS
        await options.upkeep()
      }
    } catch (error) {
      options.onError('maintenance', error, RETRY_MS)
    }
    await options.wakeup.sleep(sleepMs, signal)
  }
}

async function lookAndAct(options: MaintenanceOptions): Promise<number> {
  const { database, workerId, jobNames, queues } = options
  const look = await runOne(database, lookAhead, { workerId: workerId(), names: jobNames, queues: queues() })
  if (look.ready !== null) options.onAvailable(look.ready as readonly string[])
  const dueInMs = Number(look.dueInMs ?? Number.POSITIVE_INFINITY)
  const expiryInMs = Number(look.expiryInMs ?? Number.POSITIVE_INFINITY) + EXPIRY_SLACK_MS
  if (look.parked) options.onParked()
  if (dueInMs <= 0) {
    const { promoted, queues: promotedTo } = await runOne(database, promoteJobs, { limit: PROMOTE_LIMIT })
    if (promotedTo !== null) options.onAvailable(promotedTo as readonly string[])
    return promoted === PROMOTE_LIMIT ? 0 : PROMOTE_PAUSE_MS
  }
  if (expiryInMs <= 0) {
    const rescued = await rescueJobs(options.driver, database, options.events)
    if (rescued.length > 0) options.onAvailable(rescued)
    // A lease that a fenced transaction holds cannot be taken yet.
    return rescued.length > 0 ? PROMOTE_PAUSE_MS : RETRY_MS / 2
  }
  return Math.min(dueInMs, expiryInMs, options.maxPollMs(), ANNOUNCED_DUE_MS)
}

import { SchemaVersionError } from '../base/errors.ts'
import { Wakeup } from '../base/wakeup.ts'
import type { Driver, Session } from '../driver/driver.ts'
import type { Database } from '../driver/operation.ts'
import type { ClaimedJob } from './claimed-job.ts'
import { runExchange } from './exchange.ts'
import type { Lives } from './lives.ts'
import type { LowWater } from './low-water.ts'
import { runLeaseCloser } from './maintenance/lease-closer.ts'
import { runMaintenance } from './maintenance/maintenance.ts'
import { runSweeper } from './maintenance/sweeper.ts'
import { reportSettlement } from './report.ts'
import type { Runner } from './runner.ts'
import { Traffic } from './traffic.ts'
import type { WakeUp } from './wake-up.ts'
import type { WorkerDependencies } from './worker.ts'

/** Connections of a worker's own. Each is opened when first used. */
export interface WorkerSessions {
  readonly traffic: Session
  /** For what is recorded beside the claims, in bulk. None where connections are scarce. */
  readonly bulk: Session | undefined
  readonly maintenance: Session
}

export interface LoopsOptions {
  readonly deps: Pick<WorkerDependencies, 'driver' | 'events' | 'jobs' | 'upkeep'>
  readonly database: Database
  readonly sessions: WorkerSessions
  readonly queues: readonly string[]
  readonly lives: Lives
  readonly runner: Runner
  readonly wakeUp: WakeUp
  readonly lowWater: LowWater
  readonly isStopping: () => boolean
  readonly onError: (during: string, error: unknown, retryInMs: number) => void
  /** The schema is gone, or not one that this release may touch. */
  readonly onUnusableSchema: () => void
  /** Ends the exchange, recorded or not. */
  readonly hardStop: AbortSignal
  /** Ends the other loops. */
  readonly background: AbortSignal
}

/** The loops of a running worker. */
export interface Loops {
  readonly traffic: Traffic
  /** Resolves when all have ended. */
  readonly ended: Promise<unknown>
  /** Gives the connections back. */
  readonly release: () => Promise<void>
}

const ERROR_DELAY_MAX_MS = 5000

export async function openSessions(driver: Driver): Promise<WorkerSessions> {
  const isScarce = driver.singleConnection || driver.poolLimit < Number.POSITIVE_INFINITY
  return {
    traffic: await driver.session(),
    bulk: isScarce ? undefined : await driver.session(),
    maintenance: await driver.session(),
  }
}

/**
 * Starts what a worker does all the time: the exchange with the queue, maintenance, sweeping behind the marks, ending
 * finished leases. Each goes on after errors, and ends by its signal.
 */
export function startLoops(options: LoopsOptions): Loops {
  const { database, sessions } = options
  const on = (session: Session): Database => ({ ...database, queryable: session })
  const finished = new Wakeup()
  const parked = { seen: false }
  const traffic = trafficOf(options, on(sessions.traffic), finished)
  const background = on(sessions.maintenance)
  return {
    traffic,
    ended: Promise.all([
      exchange(options, traffic, sessions.bulk && on(sessions.bulk), parked),
      maintain(options, background, parked),
      sweep(options, background),
      closeLeases(options, traffic, background, finished),
    ]),
    release: async () => {
      const all = [sessions.traffic, sessions.bulk, sessions.maintenance]
      await Promise.all(all.map(async (session) => await session?.release()))
    },
  }
}

function trafficOf(
  { deps, lives, runner, queues, wakeUp, lowWater }: LoopsOptions,
  database: Database,
  finished: Wakeup,
): Traffic {
  const { events } = deps
  return new Traffic({
    database,
    queues,
    events,
    lowWater,
    workerId: () => lives.id,
    mayTakeSuspect: () => runner.mayTakeSuspect,
    onSettled: (settlement, answer) => {
      // A retry or snooze may be due before the next look at what is scheduled.
      if (settlement.outcome.to === 'scheduled') wakeUp.maintenance.wake()
      reportSettlement(events, settlement, answer)
    },
    onFinished: () => finished.wake(),
  })
}

/** Jobs may be parked that this worker knows. */
interface Parked {
  seen: boolean
}

async function exchange(
  options: LoopsOptions,
  traffic: Traffic,
  bulk: Database | undefined,
  parked: Parked,
): Promise<void> {
  const { lives, runner, wakeUp, isStopping, onError, hardStop } = options
  await runExchange(
    {
      slots: runner.slots,
      outbox: runner.outbox,
      pace: wakeUp.pace,
      wakeup: wakeUp.exchange,
      trade: async (settle, wants) => await traffic.trade(settle, wants),
      sawParked: () => parked.seen,
      claimParked: async () => await claimParked(options, traffic, parked),
      settleOthers: async (batch) => await traffic.settleOthers(batch),
      settleBeside: bulk && (async (batch) => await traffic.settleBeside(bulk, batch)),
      setWaiting: async (waiting) => await traffic.setWaiting(waiting),
      life: () => lives.id,
      handBack: (jobs) => runner.handBack(jobs, isStopping() ? 'stopping' : 'busy'),
      onError: (error, retryInMs) => onError('claiming and settling', error, retryInMs),
      retryDelayMs: (failures) =>
        Math.min(ERROR_DELAY_MAX_MS, 50 * 2 ** Math.min(failures, 10)) * (0.5 + Math.random() / 2),
      isStopping,
    },
    hardStop,
  )
}

async function claimParked(
  { deps, lives, runner }: LoopsOptions,
  traffic: Traffic,
  parked: Parked,
): Promise<readonly ClaimedJob[]> {
  const free = Math.min(...runner.slots.map((slots) => slots.free))
  if (!parked.seen || free === 0 || lives.id === 0n) return []
  parked.seen = false
  const jobs = [...deps.jobs.values()]
  return await traffic.claimParked(
    free,
    jobs.map((job) => job.name),
    jobs.map((job) => job.contract),
  )
}

async function maintain(
  { deps, queues, lives, wakeUp, lowWater, onError, onUnusableSchema, background }: LoopsOptions,
  database: Database,
  parked: Parked,
): Promise<void> {
  const { driver, events, jobs, upkeep } = deps
  await runMaintenance(
    {
      driver,
      database,
      events,
      wakeup: wakeUp.maintenance,
      workerId: () => lives.id,
      jobNames: [...jobs.keys()],
      // Under dead rows this look would walk over them all; the sweeper looks then, by windows.
      queues: () => (lowWater.isMarked ? [] : queues),
      maxPollMs: () => wakeUp.pollMs,
      onAvailable: (available) => {
        for (const queue of available) wakeUp.look(queue)
      },
      onParked: () => {
        parked.seen = true
        wakeUp.look()
      },
      upkeep,
      onError: (during, error, retryInMs) => {
        onError(during, error, retryInMs)
        if (error instanceof SchemaVersionError) onUnusableSchema()
      },
    },
    background,
  )
}

async function sweep(
  { queues, wakeUp, lowWater, onError, background }: LoopsOptions,
  database: Database,
): Promise<void> {
  await runSweeper(
    {
      database,
      queues,
      lowWater,
      onFound: (queue) => wakeUp.look(queue),
      onError: (error) => onError('sweeping', error, 1000),
    },
    background,
  )
}

async function closeLeases(
  { onError, background }: LoopsOptions,
  traffic: Traffic,
  database: Database,
  finished: Wakeup,
): Promise<void> {
  await runLeaseCloser(
    {
      hasFinished: () => traffic.leases.hasFinished,
      closeFinished: async () => await traffic.leases.closeFinished(database),
      wakeup: finished,
      onError: (error, retryInMs) => onError('ending leases', error, retryInMs),
    },
    background,
  )
}

import { setTimeout as delay } from 'node:timers/promises'
import type { PostgresServer } from '../../scripts/postgres-server.ts'
import type { Inspector } from './audit.ts'
import type { Life, Slot } from './fleet.ts'
import { machineMs } from './history-log.ts'
import type { ProviderDouble } from './provider.ts'
import type { Random } from './random.ts'

/** What was done and hit: a run in which a fault never hit has proved nothing. */
export interface FaultCounts {
  kills: number
  /** Of these, how many hit a running handler. */
  killsInHandler: number
  /** Of these, how many hit between a provider's acceptance of a call and its record. */
  killsAfterCall: number
  pills: number
  stops: number
  pauses: number
  /** Stopped past the lease and woken after their job had gone elsewhere. */
  zombies: number
  /** Writes of zombies that were refused. */
  zombieWritesRefused: number
  terminated: number
  terminatedListeners: number
  terminatedHeartbeats: number
  restarts: number
  lostReplies: number
  cuts: number
  freezes: number
  /** Doubts about an effect that were resolved: repeated, confirmed, or decided by the operator. */
  doubtsResolved: number
  /** Jobs that their own commit completed. */
  commits: number
}

export function noFaults(): FaultCounts {
  return {
    kills: 0,
    killsInHandler: 0,
    killsAfterCall: 0,
    pills: 0,
    stops: 0,
    pauses: 0,
    zombies: 0,
    zombieWritesRefused: 0,
    terminated: 0,
    terminatedListeners: 0,
    terminatedHeartbeats: 0,
    restarts: 0,
    lostReplies: 0,
    cuts: 0,
    freezes: 0,
    doubtsResolved: 0,
    commits: 0,
  }
}

export interface Kill {
  readonly life: Life
  readonly atMs: number
  /** `job:token` of what ran. */
  readonly running: readonly string[]
}

export interface Outage {
  readonly mode: string
  readonly downMs: number
  upMs: number
}

/** A span in which a live worker may have lost its lease for a reason: it stood still, or was cut off. */
export interface Disturbance {
  readonly slot: string
  readonly fromMs: number
  toMs: number
}

export interface Stage {
  readonly server: PostgresServer
  readonly inspector: Inspector
  readonly provider: ProviderDouble
  readonly workers: Slot[]
  readonly producers: Slot[]
  readonly counts: FaultCounts
  readonly kills: Kill[]
  readonly outages: Outage[]
  readonly disturbances: Disturbance[]
  readonly lostReplies: Map<string, number>
  readonly problems: string[]
  /** Lost replies that wait for their statement. */
  readonly armed: Set<string>
  readonly signal: AbortSignal
  isUp: boolean
}

/** At most two workers are in trouble at a time: what is promised is promised while one is well. */
function takeWorker(stage: Stage, random: Random): Slot | undefined {
  if (stage.workers.filter(({ busy }) => busy).length >= 2) return undefined
  const able = stage.workers.filter((slot) => !slot.busy && slot.ready)
  if (able.length === 0) return undefined
  const slot = random.pick(able)
  slot.busy = true
  return slot
}

export async function withWorker(
  stage: Stage,
  random: Random,
  act: (slot: Slot) => Promise<void>,
): Promise<void> {
  const slot = takeWorker(stage, random)
  if (slot === undefined) return
  try {
    await act(slot)
  } finally {
    slot.busy = false
  }
}

export async function waitFor(stage: Stage, withinMs: number, look: () => boolean): Promise<boolean> {
  const untilMs = machineMs() + withinMs
  while (!look()) {
    if (machineMs() >= untilMs || stage.signal.aborted) return look()
    await delay(25)
  }
  return true
}

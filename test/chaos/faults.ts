import { setTimeout as delay } from 'node:timers/promises'
import type { PostgresServer } from '../../scripts/postgres-server.ts'
import type { Inspector } from './audit.ts'
import type { Life, Slot } from './fleet.ts'
import { machineMs } from './history-log.ts'
import type { Random } from './random.ts'

/** What was done and hit: a run in which a fault never hit has proved nothing. */
export interface FaultCounts {
  kills: number
  /** Of these, how many hit a running handler. */
  killsInHandler: number
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
  readonly workers: readonly Slot[]
  readonly producers: readonly Slot[]
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

/** Mean pauses between two faults of a kind, in milliseconds. */
export const paceOfFaults = {
  kill: 2600,
  zombie: 4500,
  stop: 11_000,
  terminate: 2500,
  restart: 32_000,
  loseReply: 1100,
  cut: 7000,
  freeze: 9000,
  killProducer: 25_000,
}

export type FaultName = keyof typeof paceOfFaults

export const faults: Readonly<Record<FaultName, (stage: Stage, random: Random) => Promise<void>>> = {
  kill: killWorker,
  zombie: makeZombie,
  stop: stopWorker,
  terminate: terminateSession,
  restart: restartDatabase,
  loseReply,
  cut,
  freeze,
  killProducer,
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

async function withWorker(stage: Stage, random: Random, act: (slot: Slot) => Promise<void>): Promise<void> {
  const slot = takeWorker(stage, random)
  if (slot === undefined) return
  try {
    await act(slot)
  } finally {
    slot.busy = false
  }
}

async function killWorker(stage: Stage, random: Random): Promise<void> {
  await withWorker(stage, random, async (slot) => {
    await waitFor(stage, 2000, () => slot.life.history.running().size > 0 || !slot.alive)
    if (!slot.alive) return
    const { life } = slot
    const atMs = machineMs()
    await slot.kill()
    const running = [...life.history.running().keys()]
    stage.counts.kills += 1
    if (running.length > 0) stage.counts.killsInHandler += 1
    stage.kills.push({ life, atMs, running })
    await delay(random.whole(0, 800))
    slot.start()
  })
}

async function makeZombie(stage: Stage, random: Random): Promise<void> {
  await withWorker(stage, random, async (slot) => {
    const isBusy = () =>
      [...slot.life.history.running().values()].some(({ name }) => name === 'steady' || name === 'long')
    await waitFor(stage, 2000, () => isBusy() || !slot.alive)
    if (!slot.alive) return
    const { life } = slot
    const disturbance = { slot: slot.name, fromMs: machineMs(), toMs: Number.POSITIVE_INFINITY }
    stage.disturbances.push(disturbance)
    slot.pause()
    stage.counts.pauses += 1
    await delay(50)
    const held = [...life.history.running().keys()]
    const others = stage.workers.filter((other) => other !== slot)
    const wentElsewhere = () =>
      held.some((attempt) => others.some((other) => hasStarted(other, attempt.split(':')[0] ?? '', attempt)))
    const gone = await waitFor(stage, life.leaseMs + 8000, wentElsewhere)
    slot.resume()
    disturbance.toMs = machineMs()
    if (!gone || held.length === 0) return
    stage.counts.zombies += 1
    const refused = () =>
      life.history.read().filter((entry) => entry.kind === 'refused' && entry.t >= disturbance.toMs - 1)
        .length
    await waitFor(stage, 3000, () => refused() > 0)
    stage.counts.zombieWritesRefused += refused()
  })
}

function hasStarted(slot: Slot, job: string, otherThan: string): boolean {
  return slot.life.history
    .read()
    .some(
      (entry) =>
        entry.kind === 'start' && entry['job'] === job && `${job}:${String(entry['token'])}` !== otherThan,
    )
}

async function stopWorker(stage: Stage, random: Random): Promise<void> {
  await withWorker(stage, random, async (slot) => {
    stage.counts.stops += 1
    if (!(await slot.stop())) stage.problems.push(`${slot.name} did not stop within 40 s of SIGTERM`)
    await delay(random.whole(0, 300))
    slot.start()
  })
}

async function killProducer(stage: Stage, random: Random): Promise<void> {
  const slot = random.pick(stage.producers)
  if (slot.busy || !slot.ready) return
  slot.busy = true
  await slot.kill()
  slot.start()
  slot.busy = false
}

/** One session at random, or by its work: the listener's, a heartbeat's, a claim's. */
async function terminateSession(stage: Stage, random: Random): Promise<void> {
  const roll = random.next()
  const like = roll < 0.25 ? '%listen%' : roll < 0.5 ? '%renew_leases%' : '%'
  const rows = await stage.inspector.query<{ query: string }>(
    `select query, pg_terminate_backend(pid) from (
       select pid, query from pg_stat_activity
       where application_name like 'holdfast%' and query ilike $1 order by random() limit $2) chosen`,
    [like, random.chance(0.15) ? 6 : 1],
  )
  stage.counts.terminated += rows.length
  stage.counts.terminatedListeners += rows.filter(({ query }) => /^listen/i.test(query)).length
  stage.counts.terminatedHeartbeats += rows.filter(({ query }) => query.includes('renew_leases')).length
}

const restartModes = ['fast', 'immediate', 'kill'] as const

async function restartDatabase(stage: Stage): Promise<void> {
  const mode = restartModes[stage.counts.restarts % restartModes.length] ?? 'fast'
  stage.isUp = false
  const outage: Outage = { mode, downMs: machineMs(), upMs: Number.POSITIVE_INFINITY }
  stage.outages.push(outage)
  if (mode === 'kill') {
    await stage.server.kill()
    await stage.server.restart()
  } else {
    await stage.server.restart(mode)
  }
  outage.upMs = machineMs()
  stage.counts.restarts += 1
  stage.isUp = true
}

/** Statements whose answers get lost, of workers and of producers. */
const workerStatements = [
  'settle_completed',
  'settle_and_claim',
  'settle_attempts',
  'claim_jobs',
  'claim_few_jobs',
  'claim_few_jobs',
  'claim_parked_jobs',
  'settle_and_claim',
  'promote_jobs',
  'renew_leases',
  'release_unknown_leases',
  'requeue_lost_leases',
]
const producerStatements = [
  'enqueue_jobs',
  'enqueue_alike_jobs',
  'enqueue_keyed_jobs',
  'enqueue_keyed_jobs',
  'commit',
  'commit',
  'cancel_job',
]

async function loseReply(stage: Stage, random: Random): Promise<void> {
  const isWorker = random.chance(0.6)
  const slot = random.pick(isWorker ? stage.workers : stage.producers)
  const statement = random.pick(isWorker ? workerStatements : producerStatements)
  const trap = `${slot.name} ${statement}`
  if (stage.armed.has(trap)) return
  stage.armed.add(trap)
  const wanted = statement === 'commit' ? 'commit' : `holdfast:${statement} `
  const sprung = slot.proxy.dropAnswer(wanted).then((hit) => {
    stage.armed.delete(trap)
    // A statement that failed has changed nothing, and its answer was no loss.
    if (hit.sqlState !== undefined) return
    stage.counts.lostReplies += 1
    stage.lostReplies.set(statement, (stage.lostReplies.get(statement) ?? 0) + 1)
  })
  await Promise.race([sprung, delay(1000)])
}

async function cut(stage: Stage, random: Random): Promise<void> {
  const cutNow = random.pick([...stage.workers, ...stage.producers]).proxy.cut()
  if (cutNow > 0) stage.counts.cuts += 1
}

/** Nothing goes through for a while, sometimes for longer than the lease. */
async function freeze(stage: Stage, random: Random): Promise<void> {
  const act = async (slot: Slot) => {
    const disturbance = { slot: slot.name, fromMs: machineMs(), toMs: Number.POSITIVE_INFINITY }
    stage.disturbances.push(disturbance)
    slot.proxy.freeze()
    await delay(random.whole(300, 3500))
    slot.proxy.pass()
    disturbance.toMs = machineMs()
    stage.counts.freezes += 1
  }
  if (random.chance(0.3)) return await act(random.pick(stage.producers))
  await withWorker(stage, random, act)
}

async function waitFor(stage: Stage, withinMs: number, look: () => boolean): Promise<boolean> {
  const untilMs = machineMs() + withinMs
  while (!look()) {
    if (machineMs() >= untilMs || stage.signal.aborted) return look()
    await delay(25)
  }
  return true
}

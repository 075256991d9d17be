import { setTimeout as delay } from 'node:timers/promises'
import type { Slot } from '../fleet.ts'
import { machineMs } from '../history-log.ts'
import type { Random } from '../random.ts'
import { type Outage, type Stage, withWorker } from '../stage.ts'

/** One session at random, or by its work: the listener's, a heartbeat's, a claim's. */
export async function terminateSession(stage: Stage, random: Random): Promise<void> {
  const roll = random.next()
  const like = roll < 0.25 ? '%listen%' : roll < 0.5 ? '%renew_leases%' : '%'
  const rows = await stage.inspector.query<{ query: string }>(
    `select query, pg_terminate_backend(pid) from (
       select pid, query from pg_stat_activity
       where datname = current_database() and application_name like 'holdfast%' and query ilike $1 order by random() limit $2) chosen`,
    [like, random.chance(0.15) ? 6 : 1],
  )
  stage.counts.terminated += rows.length
  stage.counts.terminatedListeners += rows.filter(({ query }) => /^listen/i.test(query)).length
  stage.counts.terminatedHeartbeats += rows.filter(({ query }) => query.includes('renew_leases')).length
}

const restartModes = ['fast', 'immediate', 'kill'] as const

export async function restartDatabase(stage: Stage): Promise<void> {
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
  'begin_effect',
  'record_effect',
  'record_effect',
  'complete_in_transaction',
  'save_checkpoint',
  'commit',
  'commit',
  'commit',
]
const producerStatements = [
  'enqueue_jobs',
  'enqueue_one_job',
  'enqueue_one_job',
  'enqueue_alike_jobs',
  'enqueue_keyed_jobs',
  'enqueue_keyed_jobs',
  'commit',
  'commit',
  'cancel_job',
]

export async function loseReply(stage: Stage, random: Random): Promise<void> {
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

export async function cut(stage: Stage, random: Random): Promise<void> {
  const cutNow = random.pick([...stage.workers, ...stage.producers]).proxy.cut()
  if (cutNow > 0) stage.counts.cuts += 1
}

/** Nothing goes through for a while, sometimes for longer than the lease. */
export async function freeze(stage: Stage, random: Random): Promise<void> {
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

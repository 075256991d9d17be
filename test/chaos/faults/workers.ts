import { setTimeout as delay } from 'node:timers/promises'
import type { Slot } from '../fleet.ts'
import { machineMs } from '../history-log.ts'
import type { Random } from '../random.ts'
import { type Stage, waitFor, withWorker } from '../stage.ts'

export async function killWorker(stage: Stage, random: Random): Promise<void> {
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

/** The provider has taken a call and not answered yet: what the worker would record, nobody will. */
export async function killAfterCall(stage: Stage, random: Random): Promise<void> {
  await withWorker(stage, random, async (slot) => {
    const { life } = slot
    const held = await stage.provider.hold(life.pid, 4000)
    // A pill may have ended the process meanwhile, and another come in its place.
    if (held === undefined || slot.life !== life || !slot.alive) return
    const atMs = machineMs()
    await slot.kill()
    stage.counts.kills += 1
    stage.counts.killsInHandler += 1
    stage.counts.killsAfterCall += 1
    stage.kills.push({ life, atMs, running: [...life.history.running().keys()] })
    await delay(random.whole(0, 800))
    slot.start()
  })
}

export async function makeZombie(stage: Stage, random: Random): Promise<void> {
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

export async function stopWorker(stage: Stage, random: Random): Promise<void> {
  await withWorker(stage, random, async (slot) => {
    stage.counts.stops += 1
    if (!(await slot.stop())) stage.problems.push(`${slot.name} did not stop within 40 s of SIGTERM`)
    await delay(random.whole(0, 300))
    slot.start()
  })
}

export async function killProducer(stage: Stage, random: Random): Promise<void> {
  const slot = random.pick(stage.producers)
  if (slot.busy || !slot.ready) return
  slot.busy = true
  await slot.kill()
  slot.start()
  slot.busy = false
}

import { setTimeout as delay } from 'node:timers/promises'
import { endsOf } from './collect.ts'
import { type FaultName, faults, paceOfFaults } from './faults.ts'
import { machineMs } from './history-log.ts'
import { haveHit } from './minima.ts'
import { decideDoubts } from './operator.ts'
import type { ChaosOptions } from './options.ts'
import { seededRandom } from './random.ts'
import type { Stage } from './stage.ts'

/** Every kind of fault at its own pace, until the time is over (or the patience, if one has hit too seldom) and the last one has healed. */
export async function disturb(
  stage: Stage,
  options: ChaosOptions,
  samples: Map<string, string>,
): Promise<void> {
  const untilMs = machineMs() + options.minutes * 60_000
  const pace = { ...paceOfFaults, ...options.pace }
  const over = () => {
    const overdueMs = machineMs() - untilMs
    return (
      overdueMs >= 0 && (overdueMs >= (options.patienceMs ?? 0) || haveHit(stage.counts, options.minutes))
    )
  }
  const restartPauseMs = Math.min(pace.restart, (options.minutes * 60_000) / 3)

  const loops = (Object.keys(faults) as FaultName[]).map(async (name) => {
    const random = seededRandom(options.seed, name)
    const pauseMs = name === 'restart' ? restartPauseMs : pace[name]
    while (!over()) {
      await pause(pauseMs * (0.5 + random.next()), over)
      if (over()) return
      if (!stage.isUp) continue
      try {
        await faults[name](stage, random)
      } catch (error) {
        stage.problems.push(`the fault ${name} could not be made: ${String(error)}`)
      }
    }
  })
  const telling = every(5000, over, () => options.onProgress?.(progressOf(stage, untilMs - machineMs())))
  const sampling = every(3000, over, async () => {
    if (!stage.isUp) return
    for (const [job, end] of await endsOf(stage.inspector, 'order by finished_at desc limit 100'))
      samples.set(job, end)
  })
  const poisoning = every(9000, over, async () => await poison(stage, options))
  const deciding = every(1500, over, async () => {
    if (stage.isUp) await decideDoubts(stage)
  })
  await Promise.all([...loops, telling, sampling, poisoning, deciding])
  for (const slot of [...stage.workers, ...stage.producers]) slot.proxy.pass()
}

async function every(ms: number, over: () => boolean, act: () => unknown): Promise<void> {
  while (!over()) {
    await act()
    await pause(ms, over)
  }
}

async function pause(ms: number, over: () => boolean): Promise<void> {
  const untilMs = machineMs() + ms
  for (let leftMs = ms; leftMs > 0 && !over(); leftMs = untilMs - machineMs())
    await delay(Math.min(leftMs, 250))
}

/** A pill comes from the supervisor, so that its number is known: each ends its worker three times. */
async function poison(stage: Stage, { seed }: ChaosOptions): Promise<void> {
  if (!stage.isUp) return
  const key = `pill-${seed}-${machineMs().toFixed(0)}`
  await stage.inspector
    .query('select holdfast.enqueue($1, $2)', ['pill', JSON.stringify({ key })])
    // The database may go away at this moment: then there is no pill, or nobody knows.
    .catch(() => {})
}

function progressOf({ counts }: Stage, leftMs: number): string {
  const { kills, killsInHandler, killsAfterCall, pills, zombies, restarts, lostReplies, terminated } = counts
  return `${Math.max(0, Math.ceil(leftMs / 1000))} s left: ${killsInHandler}/${kills} kills in a handler, ${killsAfterCall} after a call, ${pills} pills, ${zombies} zombies, ${lostReplies} lost replies, ${terminated} sessions ended, ${restarts} restarts`
}

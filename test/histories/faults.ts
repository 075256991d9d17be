import { setTimeout as delay } from 'node:timers/promises'
import type { Slot } from '../chaos/fleet.ts'
import { machineMs } from '../chaos/history-log.ts'
import { type Random, seededRandom } from '../chaos/random.ts'
import { callsOf, type LoggedCall } from './call-log.ts'
import type { FaultCounts } from './fault-counts.ts'

export interface Faulty {
  readonly slots: readonly Slot[]
  readonly counts: FaultCounts
  readonly seed: number
  readonly untilMs: number
  /** Names of statements whose answers get lost. */
  readonly statements: readonly string[]
  /** Runs a statement beside the processes, on the same database. */
  readonly sql: (text: string) => Promise<readonly unknown[]>
}

/** Mean pauses between two faults of a kind, in milliseconds. */
const PACE = { kill: 1800, pause: 1700, terminate: 900, loseReply: 350, cut: 2500 }

type FaultName = keyof typeof PACE

/** Every kind of fault at its own pace, until the time is over. Then all processes run, and their links are whole. */
export async function makeFaults(run: Faulty): Promise<void> {
  const loops = (Object.keys(PACE) as FaultName[]).map(async (name) => {
    const random = seededRandom(run.seed, name)
    for (;;) {
      await delay(Math.min(PACE[name] * (0.5 + random.next()), Math.max(0, run.untilMs - machineMs())))
      if (machineMs() >= run.untilMs) return
      await faults[name](run, random)
    }
  })
  await Promise.all(loops)
}

const faults: Readonly<Record<FaultName, (run: Faulty, random: Random) => Promise<void>>> = {
  async kill(run, random) {
    await withSlot(run, random, async (slot) => {
      const { life } = slot
      await slot.kill()
      run.counts.kills += 1
      const isInCall = callsOf(life.history.read()).some(isUnderWay)
      if (isInCall) run.counts.killsInCall += 1
      await delay(random.whole(0, 300))
      slot.start()
    })
  },

  /** SIGSTOP, often for longer than the leases of locks. */
  async pause(run, random) {
    await withSlot(run, random, async (slot) => {
      slot.pause()
      await delay(random.whole(50, 700))
      slot.resume()
      run.counts.pauses += 1
    })
  },

  async terminate(run, random) {
    const ended = await run.sql(
      `select pg_terminate_backend(pid) from (
         select pid from pg_stat_activity
         where datname = current_database() and application_name like 'holdfast%'
         order by random() limit ${random.chance(0.2) ? 5 : 1}) chosen`,
    )
    run.counts.terminated += ended.length
  },

  /** The statement is done, and its answer kept back. */
  async loseReply({ slots, statements, counts }, random) {
    const { proxy } = random.pick(slots)
    const statement = random.pick(statements)
    const wanted = statement === 'commit' ? 'commit' : `holdfast:${statement} `
    // Reset at once, or silent until somebody gives up.
    const sprung = proxy.dropAnswer(wanted, random.chance(0.2) ? 'hang' : 'reset')
    const count = sprung.then(({ sqlState }) => {
      // A statement that failed has changed nothing, and its answer was no loss.
      if (sqlState === undefined) counts.lostReplies += 1
    })
    await Promise.race([count, delay(300)])
  },

  async cut({ slots, counts }, random) {
    if (random.pick(slots).proxy.cut() > 0) counts.cuts += 1
  },
}

/** Asked, and neither answered nor refused. */
function isUnderWay({ outcome, error }: LoggedCall): boolean {
  return outcome === 'unknown' && error === undefined
}

/** One process in trouble at a time is enough: the others have to meet what it left. */
async function withSlot(
  { slots }: Faulty,
  random: Random,
  act: (slot: Slot) => Promise<void>,
): Promise<void> {
  const able = slots.filter((slot) => !slot.busy && slot.ready)
  if (able.length < 2) return
  const slot = random.pick(able)
  slot.busy = true
  try {
    await act(slot)
  } finally {
    slot.busy = false
  }
}

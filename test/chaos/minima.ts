import type { FaultCounts } from './stage.ts'

/** Counted as they hit. */
const FAULTS = {
  killsInHandler: 30,
  killsAfterCall: 20,
  zombies: 10,
  zombieWritesRefused: 10,
  lostReplies: 20,
  restarts: 3,
} as const satisfies Partial<FaultCounts>

/** The least that has to hit in three minutes; scaled with the length of the run. */
const MINIMA_OF_THREE_MINUTES = {
  ...FAULTS,
  // Known when all is over.
  doubtsResolved: 20,
  commits: 100,
} as const satisfies Partial<FaultCounts>

export type Minima = Readonly<Record<keyof typeof MINIMA_OF_THREE_MINUTES, number>>

/** How often each fault has to hit in a run of `minutes`. */
export function leastOf(minutes: number): Minima {
  const scaled = Object.entries(MINIMA_OF_THREE_MINUTES).map(([name, least]) => [
    name,
    Math.max(1, Math.round((least * minutes) / 3)),
  ])
  return Object.fromEntries(scaled) as Minima
}

/** Faults that hit less often than they must for a run to prove something. */
export function shortagesOf(counts: Readonly<FaultCounts>, minutes: number): readonly string[] {
  return Object.entries(leastOf(minutes)).flatMap(([name, least]: [string, number]) => {
    const hit = counts[name as keyof FaultCounts]
    return hit < least ? [`${name}: ${hit}, at least ${least} must hit`] : []
  })
}

/** Whether each kind of fault has hit as often as it must in a run of `minutes`. */
export function haveHit(counts: Readonly<FaultCounts>, minutes: number): boolean {
  const least = leastOf(minutes)
  return (Object.keys(FAULTS) as (keyof typeof FAULTS)[]).every((name) => counts[name] >= least[name])
}

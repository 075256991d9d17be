import type { FaultCounts } from './stage.ts'

/** The least that has to hit in three minutes; scaled with the length of the run. */
const MINIMA_OF_THREE_MINUTES = {
  killsInHandler: 30,
  killsAfterCall: 20,
  zombies: 10,
  zombieWritesRefused: 10,
  lostReplies: 20,
  restarts: 3,
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

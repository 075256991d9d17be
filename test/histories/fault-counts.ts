/** What was done to the processes of a run, and hit. */
export interface FaultCounts {
  kills: number
  /** Of these, how many hit a process with a call under way. */
  killsInCall: number
  pauses: number
  terminated: number
  lostReplies: number
  cuts: number
}

export function noFaults(): FaultCounts {
  return { kills: 0, killsInCall: 0, pauses: 0, terminated: 0, lostReplies: 0, cuts: 0 }
}

/** The least that has to hit in a minute; scaled with the length of the run. */
const MINIMA_OF_A_MINUTE = { killsInCall: 12, pauses: 12, terminated: 20, lostReplies: 20 } as const

export type LeastFaults = Readonly<Record<keyof typeof MINIMA_OF_A_MINUTE, number>>

export function leastFaults(minutes: number): LeastFaults {
  const scaled = Object.entries(MINIMA_OF_A_MINUTE).map(([name, least]) => [
    name,
    Math.max(1, Math.floor(least * minutes)),
  ])
  return Object.fromEntries(scaled) as LeastFaults
}

/** A run in which a fault hit too seldom has proved nothing. */
export function faultShortages(counts: Readonly<FaultCounts>, minutes: number): readonly string[] {
  return Object.entries(leastFaults(minutes)).flatMap(([name, least]: [string, number]) => {
    const hit = counts[name as keyof FaultCounts]
    return hit < least ? [`${name}: ${hit}, at least ${least} must hit`] : []
  })
}

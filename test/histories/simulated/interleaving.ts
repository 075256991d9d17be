import type { Random } from '../../chaos/random.ts'
import type { Recorded } from '../recorded.ts'

/** A call of a client that does not exist, with the moment at which it takes effect, if it does. */
export interface Moment extends Recorded {
  readonly client: number
  readonly effectMs: number | undefined
}

export interface Interleaving {
  readonly clients: number
  readonly calls: number
  /** Share of calls whose answer is lost. Default: 0.02. */
  readonly lost?: number
  /** Share of calls that fail and change nothing. Default: 0.02. */
  readonly failed?: number
}

/**
 * Calls of several clients that overlap in time, in the order in which they take effect. One whose answer is lost may
 * take effect late, while its client has gone on, or never.
 */
export function interleave(random: Random, { clients, calls, lost = 0.02, failed = 0.02 }: Interleaving) {
  const all: Moment[] = []
  for (let client = 0; client < clients; client += 1) {
    let nowMs = random.next() * 5
    for (let call = 0; call < calls / clients; call += 1) {
      const invokedMs = nowMs + random.next() * 2
      const effectMs = invokedMs + random.next() * 4
      const endedMs = effectMs + random.next() * 4
      const about = { name: `client-${client}#${call}`, client, invokedMs }
      nowMs = endedMs
      if (random.chance(lost)) {
        const late = random.chance(0.5) ? invokedMs + random.next() * 60 : undefined
        all.push({ ...about, effectMs: late, endedMs: Number.POSITIVE_INFINITY, outcome: 'unknown' })
      } else if (random.chance(failed)) {
        all.push({ ...about, effectMs: undefined, endedMs, outcome: 'failed' })
      } else {
        all.push({ ...about, effectMs, endedMs, outcome: 'ok' })
      }
    }
  }
  const placeOf = ({ effectMs, invokedMs }: Moment) => effectMs ?? invokedMs
  return all.sort((a, b) => placeOf(a) - placeOf(b))
}

/** Runs `play` for many seeds; gives the answers, with how many there were of each. */
export function countAnswers(
  seeds: number,
  play: (seed: number) => 'valid' | 'invalid' | 'unknown',
): Readonly<Record<'valid' | 'invalid' | 'unknown', number>> {
  const counts = { valid: 0, invalid: 0, unknown: 0 }
  for (let seed = 1; seed <= seeds; seed += 1) counts[play(seed)] += 1
  return counts
}

/** Seeded random numbers: the same seed gives the same plan of faults. */
export interface Random {
  /** From 0 to below 1. */
  readonly next: () => number
  /** A whole number from `low` to `high`, both included. */
  readonly whole: (low: number, high: number) => number
  readonly chance: (probability: number) => boolean
  readonly pick: <T>(from: readonly T[]) => T
}

/** Mulberry32; `stream` tells apart the users of one seed. */
export function seededRandom(seed: number, stream = ''): Random {
  let state = seed >>> 0
  for (const letter of stream) state = (Math.imul(state, 31) + letter.charCodeAt(0)) >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = state
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const whole = (low: number, high: number) => low + Math.floor(next() * (high - low + 1))
  return {
    next,
    whole,
    chance: (probability) => next() < probability,
    pick: <T>(from: readonly T[]) => from[whole(0, from.length - 1)] as T,
  }
}

/** Random numbers that a seed repeats: the same seed gives the same run of them on every machine. */
export interface Random {
  /** From 0 up to, but without, 1. */
  next(): number
  /** A whole number from `min` to `max`, both included. */
  integer(min: number, max: number): number
  /** True with the given probability, 0 to 1. */
  chance(probability: number): boolean
  pick<T>(items: readonly T[]): T
}

/** Mulberry32: 32 bits of state, which is plenty for making up orders. Not for secrets. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0

  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  return {
    next,
    integer: (min, max) => min + Math.floor(next() * (max - min + 1)),
    chance: (probability) => next() < probability,
    pick: (items) => {
      const item = items[Math.floor(next() * items.length)]
      if (item === undefined) throw new RangeError('cannot pick from an empty list')
      return item
    },
  }
}

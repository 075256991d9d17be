import { describe, expect, it } from 'vitest'
import { OutsideTransactionError, UnavailableError } from '../base/errors.ts'
import { CachedSequence } from './cached-sequence.ts'
import { SequenceExhaustedError } from './errors.ts'
import type { ReservedRange } from './sequence-options.ts'

interface Fake {
  readonly cached: CachedSequence
  readonly counts: bigint[]
}

/** A sequence of tens up to `max`, in memory. */
function fake(block: bigint, max: bigint, reserve?: (count: bigint) => Promise<ReservedRange>): Fake {
  const counts: bigint[] = []
  let current = 0n
  const tens = async (count: bigint): Promise<ReservedRange> => {
    await Promise.resolve()
    const available = (max - current) / 10n
    if (count > available) throw new SequenceExhaustedError({ sequence: 's', tenant: '', count, available })
    const first = current + 10n
    current += 10n * count
    return { first, last: current, increment: 10n, count }
  }
  const cached = new CachedSequence({
    block,
    reserve: async (count) => {
      counts.push(count)
      return await (reserve ?? tens)(count)
    },
    requireOutside: () => {},
  })
  return { cached, counts }
}

async function many(cached: CachedSequence, count: number): Promise<bigint[]> {
  return await Promise.all(Array.from({ length: count }, async () => await cached.next()))
}

describe('a cached sequence', () => {
  it('gives each value of a block once and in order, with one request for all who wait', async () => {
    const { cached, counts } = fake(4n, 1000n)
    expect(await many(cached, 3)).toEqual([10n, 20n, 30n])
    expect(counts).toEqual([4n])
    expect(await cached.next()).toBe(40n)
    expect(await cached.next()).toBe(50n)
    expect(counts).toEqual([4n, 4n])
  })

  it('serves more callers than a block has values', async () => {
    const { cached, counts } = fake(2n, 1000n)
    expect(await many(cached, 5)).toEqual([10n, 20n, 30n, 40n, 50n])
    expect(counts).toEqual([2n, 2n, 2n])
  })

  it('takes what is left near the maximum, and then says that there is no more', async () => {
    const { cached, counts } = fake(5n, 70n)
    expect(await many(cached, 7)).toEqual([10n, 20n, 30n, 40n, 50n, 60n, 70n])
    expect(counts).toEqual([5n, 5n, 2n])
    await expect(cached.next()).rejects.toMatchObject({ code: 'SEQUENCE_EXHAUSTED', available: 0n })
  })

  it('tells all who waited of a failure, and asks again at the next call', async () => {
    let fails = true
    const range = { first: 1n, last: 2n, increment: 1n, count: 2n }
    const { cached, counts } = fake(2n, 0n, async () => {
      await Promise.resolve()
      if (fails) throw new UnavailableError({ operation: 'draw_values' })
      return range
    })
    const answers = await Promise.allSettled([cached.next(), cached.next()])
    expect(answers.map(({ status }) => status)).toEqual(['rejected', 'rejected'])
    fails = false
    expect(await cached.next()).toBe(1n)
    expect(counts).toEqual([2n, 2n])
  })

  it('refuses a call inside a transaction, also for values it has', async () => {
    let inside = false
    const cached = new CachedSequence({
      block: 2n,
      reserve: async () => await Promise.resolve({ first: 1n, last: 2n, increment: 1n, count: 2n }),
      requireOutside: () => {
        if (inside) throw new OutsideTransactionError()
      },
    })
    expect(await cached.next()).toBe(1n)
    inside = true
    await expect(cached.next()).rejects.toThrow(OutsideTransactionError)
    inside = false
    expect(await cached.next()).toBe(2n)
  })
})

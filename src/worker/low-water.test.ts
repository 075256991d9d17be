import { describe, expect, test } from 'vitest'
import { LowWater } from './low-water.ts'

function slowDown(low: LowWater): void {
  for (let claim = 0; claim < 3; claim += 1) low.took(50, 10)
}

const first = (low: LowWater, nowMs: number) => low.ranges(['q'], nowMs)[0]

describe('LowWater', () => {
  test('looks at everything while claims are quick, whatever was seen', () => {
    const low = new LowWater()
    low.saw('q', 0, 500n, 0)
    low.took(50, 10)
    low.took(50, 10)
    low.took(1, 10)
    low.took(50, 10)

    expect(first(low, 10_000)?.after).toBe(0n)
  })

  test('starts at a mark once three claims in a row were slow, and again at nothing when cleared', () => {
    const low = new LowWater()
    low.saw('q', 0, 500n, 0)
    slowDown(low)

    expect(first(low, 1000)?.after).toBe(500n)
    expect(low.ranges(['q'], 1000)[1]?.after).toBe(0n)

    low.clear()
    expect(first(low, 1000)?.after).toBe(0n)
  })

  test('uses no mark younger than 50 ms, so that a transaction has that long to commit', () => {
    const low = new LowWater()
    slowDown(low)
    for (let ms = 0; ms <= 2000; ms += 10) low.saw('q', 0, BigInt(ms + 1), ms)

    const { after } = first(low, 2000) ?? { after: -1n }

    expect(after).toBeLessThanOrEqual(1951n)
    expect(after).toBeGreaterThan(1000n)
  })

  test('looks once where the sweeper saw a job', () => {
    const low = new LowWater()
    low.saw('q', 0, 500n, 0)
    slowDown(low)
    low.found({ queue: 'q', priority: 0, after: 41n, lastPriority: 0, upto: 60n })

    expect(first(low, 1000)).toEqual({ queue: 'q', priority: 0, after: 41n, lastPriority: 0, upto: 60n })
    expect(first(low, 1000)?.after).toBe(500n)
  })
})

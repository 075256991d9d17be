import { describe, expect, test } from 'vitest'
import { LowWater } from './low-water.ts'

function slowDown(low: LowWater): void {
  for (let claim = 0; claim < 3; claim += 1) low.took(50, 10)
}

const first = (low: LowWater) => low.ranges(['q'])[0]

/** Everything up to `seq` was seen, and every transaction of that time has ended. */
function saw(low: LowWater, seq: bigint): void {
  low.saw('q', 0, seq, { xmin: 10n, xmax: 10n }, 0)
  low.saw('q', 0, seq, { xmin: 10n, xmax: 10n }, 0)
}

describe('LowWater', () => {
  test('looks at everything while claims are quick, whatever was seen', () => {
    const low = new LowWater()
    saw(low, 500n)
    low.took(50, 10)
    low.took(50, 10)
    low.took(1, 10)
    low.took(50, 10)

    expect(first(low)?.after).toBe(0n)
  })

  test('starts at a mark once three claims in a row were slow, and again at nothing when cleared', () => {
    const low = new LowWater()
    saw(low, 500n)
    slowDown(low)

    expect(first(low)?.after).toBe(500n)
    expect(low.ranges(['q'])[1]?.after).toBe(0n)

    low.clear()
    expect(first(low)?.after).toBe(0n)
  })

  test('uses a mark once a look has passed it in which every transaction of its time had ended', () => {
    const low = new LowWater()
    slowDown(low)
    low.saw('q', 0, 100n, { xmin: 7n, xmax: 10n }, 0)
    const after = [first(low)?.after]
    low.saw('q', 0, 200n, { xmin: 9n, xmax: 12n }, 1)
    after.push(first(low)?.after)
    low.saw('q', 0, 90n, { xmin: 11n, xmax: 12n }, 2)
    after.push(first(low)?.after)
    low.saw('q', 0, 300n, { xmin: 11n, xmax: 14n }, 3)
    after.push(first(low)?.after)
    low.saw('q', 0, 400n, { xmin: 12n, xmax: 15n }, 4)
    after.push(first(low)?.after)
    expect(after).toEqual([0n, 0n, 0n, 100n, 200n])
  })

  test('waits half a second at most for a transaction that stays open', () => {
    const low = new LowWater()
    slowDown(low)
    for (let ms = 0; ms <= 2000; ms += 10) low.saw('q', 0, BigInt(ms + 1), { xmin: 5n, xmax: 9n }, ms)
    const after = Number(first(low)?.after)
    expect(after).toBeLessThanOrEqual(1501)
    expect(after).toBeGreaterThan(800)
  })

  test('looks once where the sweeper saw a job', () => {
    const low = new LowWater()
    saw(low, 500n)
    slowDown(low)
    low.found({ queue: 'q', priority: 0, after: 41n, lastPriority: 0, upto: 60n })

    expect(first(low)).toEqual({ queue: 'q', priority: 0, after: 41n, lastPriority: 0, upto: 60n })
    expect(first(low)?.after).toBe(500n)
  })
})

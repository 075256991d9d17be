import { describe, expect, test } from 'vitest'
import type { Snapshot } from './class-marks.ts'
import { LAST, LowWater } from './low-water.ts'

const QUIET: Snapshot = { xmin: 10n, xmax: 10n, running: [] }
const LAST_OF_CLASS = { lastPriority: 0, upto: LAST }

function slowDown(low: LowWater): void {
  for (let claim = 0; claim < 3; claim += 1) low.took(50, 10)
}

/** Two looks in a row saw everything up to `seq`, and every transaction of that time has ended. */
function saw(low: LowWater, seq: bigint): void {
  for (let look = 0; look < 2; look += 1) low.saw('q', { taken: [], horizon: seq }, QUIET, 0)
}

/** A look takes `taken`, last places by priority; with `all`, it came to the end. */
function look(low: LowWater, taken: readonly (readonly [number, bigint])[], all = false) {
  const ranges = low.ranges(['q'])
  low.saw('q', { taken, horizon: all ? 500n : undefined }, QUIET, 0)
  return ranges
}

/** Where a look goes in the class of priority 0. */
const places = (low: LowWater) =>
  low
    .ranges(['q'])
    .filter(({ priority }) => priority === 0)
    .map(({ after, upto }) => [after, upto])

function marked(): LowWater {
  const low = new LowWater()
  saw(low, 500n)
  slowDown(low)
  return low
}

const window = (after: bigint, upto: bigint, priority = 0) => ({
  queue: 'q',
  priority,
  after,
  lastPriority: priority,
  upto,
})

describe('LowWater', () => {
  test('looks at everything while claims are quick, whatever was seen', () => {
    const low = new LowWater()
    saw(low, 500n)
    low.took(50, 10)
    low.took(50, 10)
    low.took(1, 10)
    low.took(50, 10)

    expect(low.ranges(['q'])).toEqual([{ queue: 'q', priority: 0, after: 0n, lastPriority: 9, upto: LAST }])
  })

  test('starts at a mark once three claims in a row were slow, and again at nothing when cleared', () => {
    const low = new LowWater()
    low.saw('q', { taken: [[0, 500n]], horizon: undefined }, QUIET, 0)
    low.saw('q', { taken: [[0, 600n]], horizon: undefined }, QUIET, 0)
    slowDown(low)

    expect(low.ranges(['q'])).toHaveLength(10)
    expect(low.ranges(['q'])[0]).toEqual({ queue: 'q', priority: 0, after: 500n, ...LAST_OF_CLASS })
    expect(low.ranges(['q'])[1]?.after).toBe(0n)

    low.clear()
    expect(low.ranges(['q'])[0]?.after).toBe(0n)
  })

  test('has marks for every priority when a look came to the end', () => {
    expect(
      marked()
        .ranges(['q', 'other'])
        .map(({ after }) => after),
    ).toEqual([...Array<bigint>(10).fill(500n), ...Array<bigint>(10).fill(0n)])
  })

  test('looks first where the sweeper saw a job, until a look finds no more there', () => {
    const low = marked()
    low.found(window(40n, 60n))
    expect(places(low)).toEqual([
      [40n, 60n],
      [500n, LAST],
    ])
    // It took as many as it wanted: there may be more.
    look(low, [[0, 47n]])
    expect(places(low)[0]).toEqual([47n, 60n])
    look(low, [])
    expect(places(low)[0]).toEqual([47n, 60n])
    look(low, [[0, 49n]], true)
    expect(places(low)).toEqual([[500n, LAST]])
  })

  test('leaves a window when a look went on behind it, or to a later priority', () => {
    const low = marked()
    low.found(window(40n, 60n))
    low.found(window(80n, 90n))
    look(low, [[0, 85n]])
    expect(places(low)).toEqual([
      [85n, 90n],
      [500n, LAST],
    ])
    look(low, [[1, 700n]])
    expect(places(low)).toEqual([[500n, LAST]])
  })

  test('keeps a window that the sweeper found while the look was under way', () => {
    const low = marked()
    low.ranges(['q'])
    low.found(window(40n, 60n))
    low.saw('q', { taken: [], horizon: 500n }, QUIET, 0)
    expect(places(low)[0]).toEqual([40n, 60n])
  })

  test('looks again where a job came back to while a look into that window was under way', () => {
    const low = marked()
    low.found(window(40n, 60n))
    low.ranges(['q'])
    low.found(window(44n, 45n))
    low.saw('q', { taken: [], horizon: 500n }, QUIET, 0)
    expect(places(low)[0]).toEqual([44n, 45n])
  })

  test('comes by no place twice, though windows overlap, or reach beyond the mark', () => {
    const low = marked()
    low.found(window(40n, 60n))
    low.found(window(30n, 45n))
    low.found(window(490n, 510n))
    low.found(window(600n, 700n))
    expect(places(low)).toEqual([
      [30n, 45n],
      [45n, 60n],
      [490n, 500n],
      [500n, LAST],
    ])
    look(low, [[0, 50n]])
    expect(places(low).slice(0, 2)).toEqual([
      [50n, 60n],
      [490n, 500n],
    ])
    look(low, [], true)
    expect(places(low)).toEqual([[500n, LAST]])
  })

  test('needs no windows while it looks at everything', () => {
    const low = new LowWater()
    low.found(window(40n, 60n))
    slowDown(low)
    expect(places(low)).toEqual([[0n, LAST]])
  })

  test('keeps each window once, in order, and some at most', () => {
    const low = marked()
    low.found(window(40n, 60n))
    low.found(window(20n, 30n))
    low.found(window(45n, 60n))
    low.found(window(20n, 30n, 1))
    expect(places(low)).toEqual([
      [20n, 30n],
      [40n, 60n],
      [500n, LAST],
    ])
    look(low, [])
    low.found(window(50n, 70n))
    expect(places(low)[1]).toEqual([40n, 70n])
    for (let at = 100n; at < 400n; at += 10n) low.found(window(at, at + 5n))
    expect(places(low)).toHaveLength(17)
  })

  test('sends the sweeper once where a transaction ended late, while marks are used', () => {
    const open: Snapshot = { xmin: 5n, xmax: 10n, running: [5n] }
    const low = new LowWater()
    const pass = () => {
      for (let ms = 0; ms <= 600; ms += 10) low.saw('q', { taken: [], horizon: 100n }, open, ms)
      low.saw('q', { taken: [[3, 200n]], horizon: undefined }, QUIET, 610)
    }
    pass()
    expect(low.takeLate()).toEqual([])
    slowDown(low)
    low.saw('q', { taken: [[4, 200n]], horizon: undefined }, QUIET, 610)
    expect(low.takeLate()).toEqual([window(0n, 100n, 4)])
    expect(low.takeLate()).toEqual([])
  })
})

import { describe, expect, test } from 'vitest'
import { ClassMarks, type Snapshot } from './class-marks.ts'

/** Transactions below `xmax` have begun; of these, `running` are under way. */
const snapshot = (xmax: number, ...running: number[]): Snapshot => ({
  xmin: BigInt(Math.min(xmax, ...running)),
  xmax: BigInt(xmax),
  running: running.map(BigInt),
})

describe('ClassMarks', () => {
  test('uses a mark once a look has passed it to which all had ended that may have drawn a place before it', () => {
    const marks = new ClassMarks()
    const after = [
      [100n, snapshot(10, 7)],
      // Those up to 12 may have drawn a place below 100: 11 still runs.
      [200n, snapshot(12, 11)],
      // All have ended, but this look has not come as far as the mark.
      [90n, snapshot(13)],
      [300n, snapshot(14)],
      [400n, snapshot(15, 14)],
    ].map(([seq, seen], index) => {
      marks.saw(seq as bigint, seen as Snapshot, index)
      return marks.usable
    })
    expect(after).toEqual([0n, 0n, 0n, 200n, 200n])
  })

  test('does not trust the snapshot of the look that made a mark: places are drawn while it works', () => {
    const marks = new ClassMarks()
    // The horizon of the first look covers places of transaction 10, which began after its snapshot.
    marks.saw(100n, snapshot(10), 0)
    marks.saw(150n, snapshot(11, 10), 1)
    expect(marks.usable).toBe(0n)
    marks.saw(150n, snapshot(12), 2)
    expect(marks.usable).toBe(150n)
  })

  test('waits half a second at most for a transaction that stays open', () => {
    const marks = new ClassMarks()
    for (let ms = 0; ms <= 2000; ms += 10) marks.saw(BigInt(ms + 1), snapshot(9, 5), ms)
    expect(Number(marks.usable)).toBeLessThanOrEqual(1501)
    expect(Number(marks.usable)).toBeGreaterThan(800)
  })

  test('gives back what was passed while a transaction stayed open, once, when it has ended', () => {
    const marks = new ClassMarks()
    marks.saw(10n, snapshot(5), 0)
    marks.saw(20n, snapshot(5), 1)
    expect(marks.usable).toBe(10n)
    // 5 has drawn a place and stays open; short ones come and go, and are waited for.
    let ms = 10
    for (; ms <= 2000; ms += 10) {
      expect(marks.saw(BigInt(ms + 20), snapshot(ms + 1, 5, ms), ms)).toEqual([])
    }
    const passed = marks.usable
    expect(passed).toBeGreaterThan(500n)
    expect(marks.saw(5000n, snapshot(9000), ms)).toEqual([{ after: 10n, upto: passed }])
    expect(marks.saw(6000n, snapshot(9000), ms + 1)).toEqual([])
  })

  test('gives back nothing for a transaction that began after the places that the marks pass', () => {
    const marks = new ClassMarks()
    for (let ms = 0; ms <= 600; ms += 10) marks.saw(100n, snapshot(9, 5), ms)
    expect(marks.usable).toBe(100n)
    // 12 is open beside 5; the mark at 100 was made before it began.
    marks.saw(100n, snapshot(13, 5, 12), 610)
    expect(marks.saw(100n, snapshot(13, 5), 620)).toEqual([])
    expect(marks.saw(100n, snapshot(13), 630)).toEqual([{ after: 0n, upto: 100n }])
  })
})

import { expect, it } from 'vitest'
import { Pace } from './pace.ts'

function looks(pace: Pace, got: readonly number[], nowMs = 0): number[] {
  return got.map((n) => {
    pace.looked('q', { wanted: 10, got: n }, nowMs)
    return pace.nextLookAtMs(['q']) - nowMs
  })
}

it('looks again a few times after it has said that it waits, and then every sixty of the maintenance loop’s intervals', () => {
  const pace = new Pace(['q'], 5000)
  pace.listens(true, 5000)
  pace.looks('q')
  pace.looked('q', { wanted: 10, got: 0 }, 1000)
  pace.said(true, 1000)
  expect(pace.isDue('q', 1000)).toBe(true)
  const at = [1000, 1020, 1120, 1620].map((nowMs) => {
    pace.looks('q')
    pace.looked('q', { wanted: 10, got: 0 }, nowMs)
    return pace.nextLookAtMs(['q'])
  })
  expect(at).toEqual([1020, 1120, 1620, 301_620])
})

it('does not look again for each job that was announced', () => {
  const pace = new Pace(['q'], 5000)
  pace.listens(true, 5000)
  pace.said(true, 0)
  pace.wake('q')
  pace.looks('q')
  pace.looked('q', { wanted: 10, got: 1 }, 10_000)
  expect(pace.nextLookAtMs(['q'])).toBe(310_000)
})

it('looks again when something was announced during a look, once', () => {
  const pace = new Pace(['q', 'r'], 5000)
  pace.listens(true, 5000)
  for (const queue of ['q', 'r']) pace.looks(queue)
  pace.wake('q')
  for (const queue of ['q', 'r']) pace.looked(queue, { wanted: 10, got: 1 }, 0)
  expect([pace.isDue('q', 0), pace.isDue('r', 0)]).toEqual([true, false])

  pace.looks('q')
  pace.looked('q', { wanted: 10, got: 0 }, 0)
  expect(pace.nextLookAtMs(['q'])).toBe(300_000)
})

it('looks again at growing intervals, up to sixty of the maintenance loop’s, while it hears and finds nothing', () => {
  const pace = new Pace(['q'], 5000)
  expect(looks(pace, [0, 0, 0, 0, 0])).toEqual([100, 500, 2000, 300_000, 300_000])
})

it('never waits longer than sixty poll intervals, however short they are', () => {
  expect(looks(new Pace(['q'], 1), [0, 0, 0, 0])).toEqual([60, 60, 60, 60])
})

it('looks again at once when it got all that it asked for', () => {
  expect(looks(new Pace(['q'], 5000), [10])).toEqual([0])
})

it('starts the intervals anew after something was found, while it hears nothing', () => {
  expect(looks(new Pace(['q'], 5000), [0, 0, 3, 0])).toEqual([100, 500, 20, 100])
})

it('looks at once at the queue that was announced, and at no other', () => {
  const pace = new Pace(['q', 'r'], 5000)
  for (const queue of ['q', 'r']) pace.looked(queue, { wanted: 1, got: 0 }, 0)

  pace.wake('q')

  expect([pace.isDue('q', 1), pace.isDue('r', 1)]).toEqual([true, false])
  pace.wake()
  expect(pace.isDue('r', 1)).toBe(true)
})

it('knows nothing of queues it was not given', () => {
  const pace = new Pace(['q'], 5000)
  pace.looked('x', { wanted: 1, got: 0 }, 0)
  expect(pace.isDue('x', 1e9)).toBe(false)
})

it('is busy above 300 jobs a second, and calm again below 100', () => {
  const pace = new Pace(['q'], 5000)
  const second = (claimed: number, nowMs: number) => {
    pace.looked('q', { wanted: claimed, got: claimed }, nowMs)
    pace.update(nowMs)
    return pace.busy
  }
  pace.update(1000)
  expect([second(300, 2000), second(301, 3000), second(100, 4000), second(99, 5000)]).toEqual([
    false,
    true,
    true,
    false,
  ])
})

it('looks every few milliseconds while busy, less often the longer it finds nothing', () => {
  const pace = new Pace(['q'], 5000)
  pace.update(1000)
  pace.looked('q', { wanted: 1000, got: 1000 }, 2000)
  expect(pace.update(2000)).toBe(true)
  const waits = looks(pace, [0, 0, 0, 0, 0, 0, 0], 2000)
  expect(waits[0]).toBeLessThanOrEqual(5)
  expect(Math.max(...waits)).toBe(50)
  expect(waits).toEqual([...waits].sort((a, b) => a - b))
})

it('asks for a few after a sleep, and for all it has room for when there was more, or while busy', () => {
  const pace = new Pace(['q'], 5000)
  const asked = [pace.asksFew('q')]
  pace.looked('q', { wanted: 10, got: 10 }, 0)
  asked.push(pace.asksFew('q'))
  pace.looked('q', { wanted: 10, got: 9 }, 0)
  asked.push(pace.asksFew('q'))
  pace.update(1000)
  pace.looked('q', { wanted: 1000, got: 999 }, 2000)
  pace.update(2000)
  asked.push(pace.asksFew('q'))
  expect(asked).toEqual([true, false, true, false])
})

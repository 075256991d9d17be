import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import type { Database } from '../../driver/operation.ts'
import { LowWater } from '../low-water.ts'
import { runSweeper } from './sweeper.ts'

beforeEach(() => {
  vi.useFakeTimers()
})
afterEach(() => {
  vi.useRealTimers()
})

/** A sweeper of the queue `q`, where everything up to 500 was seen; jobs lie at `jobs`. */
function setUp(jobs: readonly bigint[]) {
  const lowWater = new LowWater()
  for (let look = 0; look < 2; look += 1) {
    lowWater.saw('q', { taken: [], horizon: 500n }, { xmin: 10n, xmax: 10n, running: [] }, 0)
  }
  for (let claim = 0; claim < 3; claim += 1) lowWater.took(50, 10)
  const windows: unknown[] = []
  const database: Database = {
    schema: 'x',
    prepare: true,
    queryable: {
      async query(_, params) {
        const [queue, priority, after, upto] = params.map(String)
        windows.push([queue, Number(priority), Number(after), Number(upto)])
        const seq = jobs.find((job) => job > BigInt(after as string) && job <= BigInt(upto as string))
        return [{ seq: priority === '0' && seq !== undefined ? String(seq) : null, elapsed_ms: '6' }]
      },
    },
  }
  const stop = new AbortController()
  const found: string[] = []
  const options = { database, queues: ['q'], lowWater, onFound: (queue: string) => void found.push(queue) }
  const ended = runSweeper({ ...options, onError: (error) => void found.push(String(error)) }, stop.signal)
  return {
    lowWater,
    windows,
    found,
    stop: async () => {
      stop.abort()
      await ended
    },
  }
}

it('goes through every class up to its mark, and tells claims where it saw a job', async () => {
  const { lowWater, windows, found, stop } = setUp([41n])
  await vi.advanceTimersByTimeAsync(10_000)
  expect(windows.slice(0, 10)).toEqual(Array.from({ length: 10 }, (_, priority) => ['q', priority, 0, 500]))
  expect(found[0]).toBe('q')
  expect(lowWater.ranges(['q'])[0]).toEqual({
    queue: 'q',
    priority: 0,
    after: 40n,
    lastPriority: 0,
    upto: 500n,
  })
  await stop()
})

it('goes first where a transaction ended late', async () => {
  const { lowWater, windows, stop } = setUp([])
  const late = { queue: 'q', priority: 4, after: 300n, lastPriority: 4, upto: 320n }
  vi.spyOn(lowWater, 'takeLate').mockReturnValueOnce([late])
  await vi.advanceTimersByTimeAsync(10_000)
  expect(windows.slice(0, 2)).toEqual([
    ['q', 4, 300, 320],
    ['q', 0, 0, 500],
  ])
  await stop()
})

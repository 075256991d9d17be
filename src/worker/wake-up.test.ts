import { expect, test } from 'vitest'
import { EventHub } from '../base/events.ts'
import type { Driver, ListenerEvents } from '../driver/driver.ts'
import { LowWater } from './low-water.ts'
import { WakeUp } from './wake-up.ts'

/** A worker that has marks at 500 of the queue `q`, which notifications call `a1`. */
function setUp() {
  const lowWater = new LowWater()
  for (let look = 0; look < 2; look += 1) {
    lowWater.saw('q', { taken: [], horizon: 500n }, { xmin: 10n, xmax: 10n, running: [] }, 0)
  }
  for (let claim = 0; claim < 3; claim += 1) lowWater.took(50, 10)
  const wakeUp = new WakeUp({
    queues: ['q'],
    maxPollMs: 5000,
    events: new EventHub(),
    queueOf: (signal) => (signal === 'a1' ? 'q' : undefined),
    workerId: () => 1n,
    lookForCancelled: () => {},
    lowWater,
  })
  let heard: ListenerEvents | undefined
  const driver = {
    listen(_: string, events: ListenerEvents) {
      heard = events
      return { up: true, close: async () => {} }
    },
  }
  wakeUp.listen(driver as unknown as Driver, 'channel')
  wakeUp.pace.looked('q', { wanted: 9, got: 0 }, 1000)
  return {
    notify: (payload: string) => heard?.onNotify(payload),
    windows: () => lowWater.ranges(['q']).filter((range) => range.upto < 1000n),
    looksAtMs: () => wakeUp.pace.nextLookAtMs(['q']),
  }
}

test('looks where jobs came back to, at once', () => {
  const { notify, windows, looksAtMs } = setUp()
  notify('back:a1:3:41:47')
  expect(windows()).toEqual([{ queue: 'q', priority: 3, after: 40n, lastPriority: 3, upto: 47n }])
  expect(looksAtMs()).toBe(0)
})

test.each([
  'back:b2:3:41:47',
  'back:a1:3:41',
  'back:a1:12:41:47',
  'back:a1:3:-1:47',
  'back:a1:3:41:47 ',
  'back:',
])('is not disturbed by %j', (payload) => {
  const { notify, windows, looksAtMs } = setUp()
  notify(payload)
  expect(windows()).toEqual([])
  expect(looksAtMs()).toBeGreaterThan(0)
})

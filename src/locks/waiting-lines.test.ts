import { describe, expect, it } from 'vitest'
import type { LockId } from './lock-options.ts'
import { topicOf } from './topic.ts'
import { WaitingLines } from './waiting-lines.ts'

const lock: LockId = { resource: 'r', tenant: '', durability: 'persistent' }
const never = new AbortController().signal

/** Hints that are given by hand. */
function byHand() {
  const listening = new Map<string, () => void>()
  return {
    listening,
    on(topic: string, wake: () => void) {
      listening.set(topic, wake)
      return () => void listening.delete(topic)
    },
  }
}

describe('a waiting line', () => {
  it('lets the next be the first when the first leaves, and hears of releases while anybody waits', async () => {
    const hints = byHand()
    const lines = new WaitingLines(hints)
    const places = [1, 2, 3].map(() => lines.enter(lock, 1000))
    await places[0]?.isFirst(never)
    const order: number[] = []
    const others = [1, 2].map(async (place) => {
      await places[place]?.isFirst(never)
      order.push(place)
    })
    expect([...hints.listening.keys()]).toEqual([topicOf(lock)])
    places[0]?.leave()
    await others[0]
    expect(order).toEqual([1])
    places[1]?.leave()
    await others[1]
    places[2]?.leave()
    places[2]?.leave()
    expect(hints.listening.size).toBe(0)
  })

  it('wakes only the first, by a hint or from inside, and keeps a wake that comes while it asks', async () => {
    const hints = byHand()
    const lines = new WaitingLines(hints)
    const [first, second] = [lines.enter(lock, 1000), lines.enter(lock, 1000)]
    hints.listening.get(topicOf(lock))?.()
    await first.sleep(60_000, never)
    lines.wake(lock)
    await first.sleep(60_000, never)
    const stop = new AbortController()
    const asleep = second.isFirst(stop.signal)
    lines.wake(lock)
    stop.abort()
    await asleep
    first.leave()
    second.leave()
  })

  it('asks as often as the most impatient wants, who wakes the first for it', async () => {
    const lines = new WaitingLines(byHand())
    const patient = lines.enter(lock, 60_000)
    expect(patient.retryMs).toBe(60_000)
    const asleep = patient.sleep(60_000, never)
    const impatient = lines.enter(lock, 10)
    await asleep
    expect(patient.retryMs).toBe(10)
    impatient.leave()
    expect(patient.retryMs).toBe(60_000)
    patient.leave()
  })

  it('has nothing to do with other resources, tenants and durabilities', () => {
    const topics = [
      lock,
      { ...lock, resource: 's' },
      { ...lock, tenant: 'r' },
      { ...lock, durability: 'ephemeral' as const },
    ].map(topicOf)
    expect(new Set(topics).size).toBe(4)
    for (const topic of topics) expect(topic).toMatch(/^lock:[0-9a-f]{32}$/)
  })
})

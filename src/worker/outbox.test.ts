import { expect, it } from 'vitest'
import type { ClaimedJob } from './claimed-job.ts'
import { Outbox, type Settlement } from './outbox.ts'
import type { Outcome } from './outcome.ts'

const completed: Outcome = { to: 'completed', result: null, late: false }

function settlement(id: string, workerId = 1n, outcome: Outcome = completed): Settlement {
  return { job: { id, workerId } as ClaimedJob, durationMs: 1, outcome, error: undefined }
}

function ids(batch: { readonly settlements: readonly Settlement[] } | undefined): string[] | undefined {
  return batch?.settlements.map((s) => s.job.id)
}

it('keeps plain completions apart from all other outcomes, late completions included', () => {
  const outbox = new Outbox()
  outbox.add(settlement('a'))
  outbox.add(settlement('b', 1n, { to: 'ready', ended: 'handed-back' }))
  outbox.add(settlement('c', 1n, { to: 'completed', result: null, late: true }))

  expect(outbox.size).toBe(3)
  expect(ids(outbox.takeCompleted(10))).toEqual(['a'])
  expect(ids(outbox.takeOthers(10))).toEqual(['b', 'c'])
  expect(outbox.size).toBe(0)
  expect(outbox.takeCompleted(10)).toBeUndefined()
})

it('gives batches of at most the size asked for, of one life of the worker each', () => {
  const outbox = new Outbox()
  for (const [id, life] of [
    ['a', 1n],
    ['b', 2n],
    ['c', 1n],
    ['d', 1n],
  ] as const)
    outbox.add(settlement(id, life))

  expect(ids(outbox.takeCompleted(2))).toEqual(['a', 'c'])
  expect(ids(outbox.takeCompleted(2))).toEqual(['b'])
  expect(ids(outbox.takeCompleted(2))).toEqual(['d'])
})

it('loses nothing that could not be sent, and sends it again by the statement that looks whether it is recorded', () => {
  const outbox = new Outbox()
  outbox.add(settlement('a'))
  const batch = outbox.takeCompleted(10)
  outbox.add(settlement('b'))
  if (batch) outbox.putBack(batch, false)

  expect(ids(outbox.takeOthers(10))).toEqual(['a'])
  expect(ids(outbox.takeCompleted(10))).toEqual(['b'])
})

it('sends what the database refused one by one, so that one bad outcome holds up no other', () => {
  const outbox = new Outbox()
  outbox.add(settlement('a'))
  outbox.add(settlement('b'))
  const batch = outbox.takeCompleted(10)
  if (batch) outbox.putBack(batch, true)

  expect(outbox.takeCompleted(10)).toBeUndefined()
  const [first, second] = [outbox.takeOthers(10), outbox.takeOthers(10)]
  expect([ids(first), ids(second)]).toEqual([['a'], ['b']])
  expect(first?.settlements[0]?.failures).toBe(1)
})

it('tells how long the oldest has waited, and 0 when empty', async () => {
  const outbox = new Outbox()
  expect(outbox.oldestMs()).toBe(0)
  outbox.add(settlement('a'))
  await new Promise((resolve) => setTimeout(resolve, 15))
  outbox.add(settlement('b'))
  expect(outbox.oldestMs()).toBeGreaterThan(10)
})

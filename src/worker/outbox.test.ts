import { expect, it } from 'vitest'
import type { ClaimedJob } from './claimed-job.ts'
import { Lease } from './lease.ts'
import { Outbox, type Settlement } from './outbox.ts'
import type { Outcome } from './outcome.ts'

const completed: Outcome = { to: 'completed', result: null, late: false }

function settlement(
  id: string,
  workerId = 1n,
  outcome: Outcome = completed,
  lease = new Lease(1n, workerId, 1),
): Settlement {
  return {
    job: { id, lease } as ClaimedJob,
    durationMs: 1,
    endedAtMs: performance.now(),
    outcome,
    error: undefined,
  }
}

/** Completions of the jobs of one lease. */
function completions(ids: readonly string[], size = ids.length): Settlement[] {
  const lease = new Lease(1n, 1n, size)
  return ids.map((id) => settlement(id, 1n, completed, lease))
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

it('gives leases that are here as a whole first, and parts only once they have waited', () => {
  const outbox = new Outbox()
  const [a, b] = completions(['a', 'b', 'c'])
  for (const s of [a, ...completions(['x', 'y']), b]) outbox.add(s as Settlement)

  expect(outbox.whole).toBe(2)
  expect(ids(outbox.takeCompleted(10))).toEqual(['x', 'y'])
  expect(outbox.whole).toBe(0)
  expect(ids(outbox.takeCompleted(10))).toEqual(['a', 'b'])
})

it('gives parts together with whole leases when they have waited long enough', () => {
  const outbox = new Outbox()
  const [a] = completions(['a', 'b'])
  outbox.add({ ...(a as Settlement), endedAtMs: performance.now() - 1000 })
  for (const s of completions(['x', 'y'])) outbox.add(s)
  expect(ids(outbox.takeCompleted(10))?.sort()).toEqual(['a', 'x', 'y'])
})

it('never cuts a whole lease in two, and does not take what is left of a part for a whole one', () => {
  const outbox = new Outbox()
  for (const s of [...completions(['a', 'b', 'c']), ...completions(['d', 'e', 'f'])]) outbox.add(s)
  expect(ids(outbox.takeCompleted(5))).toEqual(['a', 'b', 'c'])
  expect(ids(outbox.takeCompleted(5))).toEqual(['d', 'e', 'f'])

  const [x, y, z] = completions(['x', 'y', 'z']) as [Settlement, Settlement, Settlement]
  outbox.add(x)
  expect(ids(outbox.takeCompleted(5))).toEqual(['x'])
  outbox.add(y)
  outbox.add(z)
  expect(outbox.whole).toBe(0)
  expect(ids(outbox.takeCompleted(5))).toEqual(['y', 'z'])
})

it('records two claims of one job by two statements: an answer tells of jobs, and only one claim is still valid', () => {
  const outbox = new Outbox()
  const failed: Outcome = { to: 'scheduled', ended: 'failed', delayMs: 0, error: '{}' }
  outbox.add(settlement('a', 1n, failed, new Lease(1n, 1n, 1)))
  outbox.add(settlement('a', 1n, { to: 'ready', ended: 'handed-back' }, new Lease(2n, 1n, 1)))
  outbox.add(settlement('b', 1n, failed))

  const tokens = (batch: ReturnType<Outbox['takeOthers']>) =>
    batch?.settlements.map(({ job }) => `${job.id}${job.lease.token}`)
  expect(tokens(outbox.takeOthers(10))).toEqual(['a1', 'b1'])
  expect(tokens(outbox.takeOthers(10))).toEqual(['a2'])
  expect(outbox.size).toBe(0)
})

import { expect, it } from 'vitest'
import { UnavailableError } from '../base/errors.ts'
import { Wakeup } from '../base/wakeup.ts'
import { BulkSettler } from './bulk-settler.ts'
import type { ClaimedJob } from './claimed-job.ts'
import { Lease } from './lease.ts'
import { Outbox, type SettlementBatch } from './outbox.ts'

function fill(outbox: Outbox, count: number, size = count): void {
  const lease = new Lease(1n, 1n, size)
  for (let i = 0; i < count; i += 1) {
    outbox.add({
      job: { id: String(i), lease } as ClaimedJob,
      durationMs: 1,
      endedAtMs: performance.now(),
      outcome: { to: 'completed', result: null, late: false },
      error: undefined,
    })
  }
}

function setUp(settleBeside: ((batch: SettlementBatch) => Promise<void>) | undefined) {
  const outbox = new Outbox()
  const errors: unknown[] = []
  const wakeup = new Wakeup()
  const bulk = new BulkSettler({ outbox, wakeup, settleBeside, onError: (error) => errors.push(error) })
  return { outbox, errors, bulk }
}

it('leaves the outcomes to the one traffic while they are few, parts of leases, or without a second connection', () => {
  const few = setUp(async () => {})
  fill(few.outbox, 100)
  const parts = setUp(async () => {})
  fill(parts.outbox, 300, 301)
  const single = setUp(undefined)
  fill(single.outbox, 400)
  expect([few, parts, single].map(({ bulk }) => bulk.takesOver())).toEqual([false, false, false])
})

it('records batch after batch for as long as there are many, one statement at a time', async () => {
  const sizes: number[] = []
  let underWay = 0
  const { outbox, bulk } = setUp(async ({ settlements }) => {
    underWay += 1
    expect(underWay).toBe(1)
    sizes.push(settlements.length)
    await new Promise((resolve) => setTimeout(resolve, 5))
    underWay -= 1
  })
  for (const count of [400, 400, 100]) fill(outbox, count)
  expect(bulk.takesOver()).toBe(true)
  expect([bulk.takesOver(), bulk.isBusy]).toEqual([true, true])
  await bulk.end()
  expect(sizes).toEqual([400, 400])
  expect([outbox.size, bulk.isBusy]).toEqual([100, false])
})

it('lets the one traffic help when the outcomes pile up', () => {
  const { outbox, bulk } = setUp(async () => await new Promise(() => {}))
  fill(outbox, 400)
  expect(bulk.takesOver()).toBe(true)
  for (let i = 0; i < 4; i += 1) fill(outbox, 400)
  expect(bulk.takesOver()).toBe(false)
})

it('puts back what could not be recorded, for the statement that looks whether it is', async () => {
  const { outbox, bulk, errors } = setUp(async () => {
    throw new UnavailableError({ operation: 'settle_completed' })
  })
  fill(outbox, 400)
  bulk.takesOver()
  await bulk.end()
  expect(errors).toHaveLength(1)
  expect([outbox.size, outbox.whole]).toEqual([400, 0])
  expect(outbox.takeOthers(400)?.settlements).toHaveLength(400)
})

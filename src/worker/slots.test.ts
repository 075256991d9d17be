import { expect, it } from 'vitest'
import type { ClaimedJob } from './claimed-job.ts'
import { Slots } from './slots.ts'

function job(id: string): ClaimedJob {
  return { id } as ClaimedJob
}

function makeSlots(concurrency: number) {
  const started: string[] = []
  const slots = new Slots('q', concurrency, ({ id }) => void started.push(id))
  return { slots, started }
}

it('starts a job at once while a slot is free, and the others in order as slots free', () => {
  const { slots, started } = makeSlots(2)
  for (const id of ['a', 'b', 'c', 'd']) slots.add(job(id))

  expect(started).toEqual(['a', 'b'])
  expect([slots.running, slots.buffered, slots.free]).toEqual([2, 2, 0])
  slots.finished(1)
  slots.finished(1)
  expect(started).toEqual(['a', 'b', 'c', 'd'])
})

it('asks for no more than its slots until it knows how long jobs take', () => {
  const { slots } = makeSlots(5)
  expect([slots.wanted, slots.ahead]).toEqual([5, 0])
  slots.add(job('a'))
  expect(slots.wanted).toBe(4)
})

it('claims ahead what runs within 20 ms, and nothing for jobs that take longer', () => {
  const { slots } = makeSlots(4)
  slots.add(job('a'))
  slots.finished(2)
  expect(slots.ahead).toBe(40)
  const slow = makeSlots(4).slots
  slow.add(job('a'))
  slow.finished(25)
  expect([slow.ahead, slow.wanted]).toEqual([0, 4])
})

it('never claims more than 1,000 ahead, however short the jobs', () => {
  const { slots } = makeSlots(10)
  slots.add(job('a'))
  slots.finished(0)
  expect(slots.ahead).toBe(1000)
})

it('forgets that jobs were fast as they grow slow', () => {
  const { slots } = makeSlots(1)
  for (let i = 0; i < 5; i += 1) {
    slots.add(job('a'))
    slots.finished(1)
  }
  for (let i = 0; i < 5; i += 1) {
    slots.add(job('b'))
    slots.finished(200)
  }
  expect(slots.ahead).toBe(0)
})

it('gives up its buffer once no slot has moved for so long, and claims nothing ahead until a job ends', async () => {
  const { slots } = makeSlots(1)
  slots.add(job('fast'))
  slots.finished(1)
  for (const id of ['a', 'b', 'c']) slots.add(job(id))
  expect(slots.takeStale(30)).toEqual([])

  await new Promise((resolve) => setTimeout(resolve, 40))

  expect(slots.takeStale(30).map(({ id }) => id)).toEqual(['b', 'c'])
  expect([slots.buffered, slots.ahead, slots.wanted]).toEqual([0, 0, 0])
})

it('keeps order over many jobs', () => {
  const { slots, started } = makeSlots(1)
  const ids = Array.from({ length: 500 }, (_, i) => String(i))
  for (const id of ids) slots.add(job(id))
  for (let i = 1; i < ids.length; i += 1) slots.finished(1)
  expect(started).toEqual(ids)
})

import { expect, it } from 'vitest'
import { EventHub } from '../../base/events.ts'
import type { Driver, RawRow } from '../../driver/driver.ts'
import { runMaintenance } from './maintenance.ts'

/** Runs one round that sees `look`, and gives how long it would sleep, and what it did. */
async function oneRound(look: RawRow | Error, promoted: RawRow = {}) {
  const stop = new AbortController()
  const slept: number[] = []
  const available: string[] = []
  const errors: string[] = []
  const driver = {
    async transaction() {
      available.push('rescue')
    },
  } as unknown as Driver
  await runMaintenance(
    {
      driver,
      database: {
        schema: 'x',
        prepare: true,
        queryable: {
          async query(text) {
            if (text.includes('holdfast:promote_jobs')) return [promoted]
            if (look instanceof Error) throw look
            return [look]
          },
        },
      },
      events: new EventHub(),
      wakeup: {
        async sleep(ms: number) {
          slept.push(ms)
          stop.abort()
        },
      } as never,
      workerId: () => 1n,
      jobNames: [],
      queues: () => ['a', 'b'],
      maxPollMs: () => 3_600_000,
      onAvailable: (queues) => available.push(...queues),
      onParked: () => available.push('parked'),
      upkeep: async () => {},
      onError: (during) => errors.push(during),
    },
    stop.signal,
  )
  return { sleptMs: slept[0], available, errors }
}

const nothing = { due_in_ms: null, expiry_in_ms: null, parked: 'f' }

it('sleeps exactly until the next scheduled job is due', async () => {
  expect(await oneRound({ ...nothing, due_in_ms: '2750' })).toMatchObject({ sleptMs: 2750 })
})

it('sleeps until just after the next lease may run out', async () => {
  expect(await oneRound({ ...nothing, expiry_in_ms: '900' })).toMatchObject({ sleptMs: 950 })
})

it('looks at least every minute, which is how far ahead enqueues announce', async () => {
  expect(await oneRound(nothing)).toMatchObject({ sleptMs: 60_000 })
})

it('promotes what is due, tells the queues, and goes on at once while there may be more', async () => {
  const due = { ...nothing, due_in_ms: '-5' }
  expect(await oneRound(due, { promoted: '3', queues: '["a","b"]' })).toMatchObject({
    sleptMs: 10,
    available: ['a', 'b'],
  })
  expect(await oneRound(due, { promoted: '1000', queues: '["a"]' })).toMatchObject({ sleptMs: 0 })
})

it('rescues once a lease has run out', async () => {
  expect((await oneRound({ ...nothing, expiry_in_ms: '-60' })).available).toEqual(['rescue'])
})

it('tells of parked jobs', async () => {
  expect((await oneRound({ ...nothing, parked: 't' })).available).toEqual(['parked'])
})

it('reports a failed look and tries again in a second', async () => {
  expect(await oneRound(new Error('away'))).toEqual({ sleptMs: 1000, available: [], errors: ['maintenance'] })
})

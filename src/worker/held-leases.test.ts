import { expect, it } from 'vitest'
import { UnavailableError } from '../base/errors.ts'
import { EventHub } from '../base/events.ts'
import type { Database } from '../driver/operation.ts'
import { HeldLeases } from './held-leases.ts'

/** More than one statement takes. */
const COUNT = 250

it('tries again what a transaction holds, also when the next statement fails', async () => {
  let calls = 0
  const database: Database = {
    schema: 'x',
    prepare: true,
    queryable: {
      async query() {
        calls += 1
        if (calls === 2) throw new UnavailableError({ operation: 'close_leases' })
        return [{ left: null, busy: calls === 1 ? '{1,2}' : null }]
      },
    },
  }
  const options = { database, events: new EventHub(), workerId: () => 1n, onFinished: () => {} }
  const leases = new HeldLeases(options)
  for (let token = 1n; token <= COUNT; token += 1n) leases.settled(leases.open(token, 1n, 1), 1, false)

  await expect(leases.closeFinished(database)).rejects.toThrow(UnavailableError)
  expect(leases.tokens).toHaveLength(COUNT - 200 + 2)
  expect(await leases.closeFinished(database)).toBe(0)
  expect(leases.tokens).toEqual([])
})

it('counts a lease as ended when its last job is recorded, by whichever way', async () => {
  let finished = 0
  const database = {} as Database
  const options = { database, events: new EventHub(), workerId: () => 1n, onFinished: () => (finished += 1) }
  const leases = new HeldLeases(options)
  const parts = leases.open(7n, 1n, 3)
  const whole = leases.open(8n, 1n, 2)
  leases.settled(whole, 2, true)
  leases.settled(parts, 2, false)
  expect([leases.tokens, leases.hasFinished, finished]).toEqual([[7n], false, 0])
  // By its handler's own commit.
  leases.settled(parts, 1, false)
  expect([leases.tokens, leases.hasFinished, finished]).toEqual([[7n], true, 1])
})

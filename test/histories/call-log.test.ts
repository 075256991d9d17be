import { describe, expect, it } from 'vitest'
import { InvalidArgumentError, OutcomeUnknownError, UnavailableError } from '../../src/base/errors.ts'
import type { App } from '../../src/index.ts'
import { seededRandom } from '../chaos/random.ts'
import { Client, callsOf, memoryLog } from './call-log.ts'
import { faultShortages, leastFaults, noFaults } from './fault-counts.ts'

/** The log of one client that makes one call, which ends by `act`. */
async function logOf(act: () => unknown) {
  const { note, entries } = memoryLog()
  // No call of these tests uses the application.
  const app = {} as App
  const client = new Client({ name: 'c', app, random: seededRandom(1), startMs: 0, note })
  await client.call('register', { kind: 'read' }, act, () => ({ value: 1n }))
  return entries
}

async function outcomeOf(act: () => unknown) {
  const [call] = callsOf(await logOf(act))
  return call?.outcome
}

describe('a call is logged', () => {
  it('as ok with its answer, 64-bit numbers as text', async () => {
    const [call] = callsOf(await logOf(() => 'done'))
    expect(call).toMatchObject({ name: 'c#1', workload: 'register', outcome: 'ok', answer: { value: '1' } })
    expect(call?.endedMs).toBeGreaterThanOrEqual(call?.invokedMs ?? Number.NaN)
  })

  it('as failed only if the error says that nothing was changed', async () => {
    const failing = (error: Error) => () => {
      throw error
    }
    const unavailable = new UnavailableError({ operation: 'x' })
    expect(await outcomeOf(failing(new InvalidArgumentError({ field: 'x', problem: 'y' })))).toBe('failed')
    expect(await outcomeOf(failing(unavailable))).toBe('failed')
    expect(await outcomeOf(failing(new OutcomeUnknownError({ operation: 'x' })))).toBe('unknown')
    expect(await outcomeOf(failing(new Error('who knows')))).toBe('unknown')
  })

  it('as unknown, and as never answered, if its process did not live to see the answer', async () => {
    const entries = await logOf(() => 'done')
    expect(callsOf(entries.slice(0, 1))).toMatchObject([
      { outcome: 'unknown', endedMs: Number.POSITIVE_INFINITY, answer: undefined },
    ])
  })
})

describe('a run in which a fault hit too seldom', () => {
  it('has proved nothing', () => {
    const least = leastFaults(1)
    expect(faultShortages({ ...noFaults(), ...least }, 1)).toEqual([])
    expect(faultShortages({ ...noFaults(), ...least, pauses: least.pauses - 1 }, 1)).toHaveLength(1)
    expect(faultShortages(noFaults(), 0.01)).toHaveLength(Object.keys(least).length)
  })
})

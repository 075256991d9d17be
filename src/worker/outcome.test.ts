import { expect, it } from 'vitest'
import { decideOutcome, type Ending, type Outcome, PermanentError } from './outcome.ts'

const facts = { attempt: 1, maxAttempts: 3, retry: { type: 'fixed', delayMs: 50 } } as const
const last = { ...facts, attempt: 3 }

it('completes with the result as JSON; nothing returned is no result', () => {
  expect(decideOutcome({ kind: 'returned', value: { a: [1] }, late: false }, facts)).toEqual({
    to: 'completed',
    result: '{"a":[1]}',
    late: false,
  })
  expect(decideOutcome({ kind: 'returned', value: undefined, late: true }, facts)).toEqual({
    to: 'completed',
    result: null,
    late: true,
  })
  expect(decideOutcome({ kind: 'returned', value: null, late: false }, facts)).toMatchObject({
    result: 'null',
  })
})

it('completes whatever the result is, and says what was altered', () => {
  const cycle: { self?: unknown } = {}
  cycle.self = cycle
  const hostile = {
    toJSON: () => {
      throw new Error('no')
    },
  }
  for (const value of [1n, cycle, hostile, Symbol('s'), 'a\u0000b', '\ud83d', 'x'.repeat(3_000_000)]) {
    const outcome = decideOutcome({ kind: 'returned', value, late: false }, facts)
    expect(outcome).toMatchObject({ to: 'completed', altered: expect.any(String) })
    const text = outcome.to === 'completed' ? outcome.result : undefined
    expect(() => JSON.parse(text ?? '')).not.toThrow()
  }
})

it('retries a failure after the wait of its policy while attempts are left, then discards', () => {
  const ending: Ending = { kind: 'threw', error: new Error('no') }
  expect(decideOutcome(ending, facts)).toMatchObject({ to: 'scheduled', ended: 'failed', delayMs: 50 })
  expect(decideOutcome(ending, last)).toMatchObject({ to: 'discarded', reason: 'no attempts left' })
  expect(decideOutcome({ ...ending, kind: 'timed-out' }, facts)).toMatchObject({
    to: 'scheduled',
    ended: 'timed-out',
  })
})

it('discards a permanent error at once', () => {
  expect(decideOutcome({ kind: 'threw', error: new PermanentError('never') }, facts)).toMatchObject({
    to: 'discarded',
    reason: 'permanent error',
  })
})

it('hands an interrupted attempt back, on the last one too', () => {
  expect(decideOutcome({ kind: 'interrupted' }, last)).toEqual({ to: 'ready', ended: 'interrupted' })
})

it('does what the handler decided; a snooze is possible on the last attempt, a retry is not', () => {
  const decide = (
    decision: Extract<Ending, { kind: 'decided' }>['decision'],
    of: typeof facts | typeof last = facts,
  ): Outcome => decideOutcome({ kind: 'decided', decision }, of)

  expect(decide({ kind: 'snooze', inMs: 7 }, last)).toEqual({ to: 'scheduled', ended: 'snoozed', delayMs: 7 })
  expect(decide({ kind: 'retry', inMs: 7, reason: 'r' })).toMatchObject({
    to: 'scheduled',
    ended: 'failed',
    delayMs: 7,
  })
  expect(decide({ kind: 'retry', inMs: 7, reason: 'r' }, last)).toMatchObject({ to: 'discarded' })
  expect(decide({ kind: 'discard', reason: 'd' })).toEqual({ to: 'discarded', reason: 'd', error: null })
  expect(decide({ kind: 'cancel', reason: 'c' })).toEqual({ to: 'cancelled', reason: 'c' })
})

it('cuts a reason to a kibibyte of well-formed, storable text', () => {
  const outcome = decideOutcome(
    { kind: 'decided', decision: { kind: 'discard', reason: `\u0000${'😀'.repeat(1000)}` } },
    facts,
  )
  if (outcome.to !== 'discarded') throw new Error('not discarded')
  expect(Buffer.byteLength(outcome.reason)).toBeLessThanOrEqual(1024)
  expect(outcome.reason).not.toContain('\u0000')
  expect(Buffer.from(outcome.reason).toString()).toBe(outcome.reason)
})

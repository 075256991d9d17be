import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type BackoffPolicy, backoffMs, checkBackoff } from './backoff.ts'
import { limits } from './limits.ts'

const policies = fc.oneof(
  fc.record({
    type: fc.constant('exponential' as const),
    baseMs: fc.integer({ min: limits.backoffBaseMs.min, max: limits.backoffBaseMs.max }),
    factor: fc.double({ min: 1, max: 100, noNaN: true }),
    capMs: fc.integer({ min: 0, max: limits.backoffCapMs.max }),
  }),
  fc.record({
    type: fc.constant('fixed' as const),
    delayMs: fc.integer({ min: 0, max: limits.backoffCapMs.max }),
  }),
)
const attempts = fc.integer({ min: 1, max: 2 ** 31 - 1 })

describe('backoff', () => {
  it('doubles from one second up to an hour, then stays', () => {
    const waits = [1, 2, 3, 12, 13, 1000].map((attempt) =>
      backoffMs({ type: 'exponential', jitter: 'none' }, attempt),
    )

    expect(waits).toEqual([1000, 2000, 4000, 2_048_000, 3_600_000, 3_600_000])
  })

  it('stays within its cap and never shrinks, for any policy and attempt', () => {
    fc.assert(
      fc.property(policies, attempts, (policy, attempt) => {
        const steady = { ...policy, jitter: 'none' } as const
        const wait = backoffMs(steady, attempt)
        const cap = policy.type === 'fixed' ? policy.delayMs : policy.capMs
        expect(Number.isInteger(wait)).toBe(true)
        expect(wait).toBeGreaterThanOrEqual(0)
        expect(wait).toBeLessThanOrEqual(cap)
        expect(backoffMs(steady, attempt + 1)).toBeGreaterThanOrEqual(wait)
      }),
    )
  })

  it('spreads full jitter from nothing to the whole wait', () => {
    fc.assert(
      fc.property(
        policies,
        attempts,
        fc.double({ min: 0, max: 1, noNaN: true }),
        (policy, attempt, random) => {
          const longest = backoffMs({ ...policy, jitter: 'none' }, attempt)
          const wait = backoffMs({ ...policy, jitter: 'full' }, attempt, { random: () => random })
          expect(Math.abs(wait - longest * random)).toBeLessThanOrEqual(1)
        },
      ),
    )
  })

  it('asks a function, with the attempt and the error', () => {
    const error = new Error('x')

    expect(backoffMs((attempt, cause) => (cause === error ? attempt * 10.4 : 0), 3, { error })).toBe(31)
  })

  it.each([
    () => Number.NaN,
    () => -1,
    () => Infinity,
    () => 'x' as never,
    () => {
      throw new Error('mine')
    },
  ])('takes the default for a function that gives no wait (%#)', (policy: BackoffPolicy) => {
    expect(backoffMs(policy, 2, { random: () => 0.5 })).toBe(1000)
  })

  it('checks declared policies', () => {
    expect(checkBackoff('backoff', undefined)).toEqual({ type: 'exponential' })
    expect(checkBackoff('backoff', { type: 'fixed', delayMs: 5 })).toEqual({
      type: 'fixed',
      delayMs: 5,
      jitter: 'none',
    })
    expect(checkBackoff('backoff', { type: 'exponential' })).toMatchObject({
      baseMs: 1000,
      factor: 2,
      jitter: 'full',
    })
  })

  it.each([
    ['backoff.baseMs', { type: 'exponential', baseMs: -1 }],
    ['backoff.factor', { type: 'exponential', factor: 0.5 }],
    ['backoff.delayMs', { type: 'fixed' }],
    ['backoff.type', { type: 'linear' }],
    ['backoff.jitter', { type: 'exponential', jitter: 'some' }],
    ['backoff', 5],
    ['backoff', null],
  ])('refuses a wrong %s', (field, policy) => {
    expect(() => checkBackoff('backoff', policy as never)).toThrow(expect.objectContaining({ field }))
  })
})

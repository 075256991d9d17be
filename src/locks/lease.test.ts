import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { monotonicMs } from '../base/clock.ts'
import { Lease } from './lease.ts'

const facts = { resource: 'r', fencingToken: 7n }

describe('a lease', () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it('counts until its time is up, and tells by its signal', () => {
    const lease = new Lease(facts)
    lease.count(monotonicMs() + 100)
    const { signal } = lease
    vi.advanceTimersByTime(99)
    expect([lease.counts, signal.aborted]).toEqual([true, false])
    vi.advanceTimersByTime(2)
    expect([lease.counts, signal.aborted]).toEqual([false, true])
    expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', why: 'expired', ...facts })
  })

  it('goes on from each extension, to a later end or an earlier one', () => {
    const lease = new Lease(facts)
    lease.count(monotonicMs() + 100)
    const { signal } = lease
    lease.count(monotonicMs() + 1000)
    vi.advanceTimersByTime(500)
    expect(signal.aborted).toBe(false)
    lease.count(monotonicMs() + 10)
    vi.advanceTimersByTime(11)
    expect(signal.aborted).toBe(true)
  })

  it('that is over never counts again, and keeps its first reason, asked for before or after', () => {
    const lease = new Lease(facts)
    lease.count(monotonicMs() + 100)
    lease.lose('gone')
    lease.lose('expired')
    lease.count(monotonicMs() + 100)
    expect(lease.counts).toBe(false)
    expect(lease.signal.reason).toMatchObject({ why: 'gone' })
  })

  it('that was given back does not abort its signal', () => {
    const lease = new Lease(facts)
    lease.count(monotonicMs() + 100)
    const { signal } = lease
    lease.end()
    vi.advanceTimersByTime(1000)
    expect([lease.counts, signal.aborted]).toEqual([false, false])
    expect(vi.getTimerCount()).toBe(0)
  })

  it('has a timer only while somebody has its signal', () => {
    const lease = new Lease(facts)
    lease.count(monotonicMs() + 100)
    expect(vi.getTimerCount()).toBe(0)
    expect(lease.signal.aborted).toBe(false)
    expect(vi.getTimerCount()).toBe(1)
    lease.lose('gone')
    expect(vi.getTimerCount()).toBe(0)
  })
})

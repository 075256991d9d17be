import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { sleep } from './sleep.ts'
import { Wakeup } from './wakeup.ts'

const MONTH_MS = 30 * 24 * 3600 * 1000

beforeEach(() => {
  vi.useFakeTimers()
})

afterEach(() => {
  vi.useRealTimers()
})

function watch(promise: Promise<void>): { done: boolean } {
  const state = { done: false }
  void promise.then(() => {
    state.done = true
  })
  return state
}

describe('sleep', () => {
  it('waits longer than one timer can', async () => {
    const sleeper = watch(sleep(2 * MONTH_MS))

    await vi.advanceTimersByTimeAsync(2 * MONTH_MS - 1)
    expect(sleeper.done).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(sleeper.done).toBe(true)
  })

  it('ends with its signal and leaves no timer and no listener', async () => {
    const controller = new AbortController()
    const remove = vi.spyOn(controller.signal, 'removeEventListener')
    const sleeping = sleep(MONTH_MS, controller.signal)

    controller.abort()

    await sleeping
    expect(vi.getTimerCount()).toBe(0)
    expect(remove).toHaveBeenCalledTimes(1)
  })

  it('returns at once when aborted before, or for no time', async () => {
    await sleep(1000, AbortSignal.abort())
    await sleep(0)
    await sleep(-5)
    await sleep(Number.NaN)
    expect(vi.getTimerCount()).toBe(0)
  })
})

describe('wakeup', () => {
  const { signal } = new AbortController()

  it('wakes its sleeper', async () => {
    const wakeup = new Wakeup()
    const sleeping = wakeup.sleep(MONTH_MS, signal)
    wakeup.wake()

    await sleeping
    expect(vi.getTimerCount()).toBe(0)
  })

  it('keeps a wake for the next sleep, once', async () => {
    const wakeup = new Wakeup()
    wakeup.wake()
    wakeup.wake()
    await wakeup.sleep(1000, signal)

    const second = watch(wakeup.sleep(1000, signal))

    await vi.advanceTimersByTimeAsync(999)
    expect(second.done).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(second.done).toBe(true)
  })

  it('does not wake early from a long sleep', async () => {
    const sleeper = watch(new Wakeup().sleep(MONTH_MS, signal))

    await vi.advanceTimersByTimeAsync(MONTH_MS - 1)
    expect(sleeper.done).toBe(false)
    await vi.advanceTimersByTimeAsync(1)
    expect(sleeper.done).toBe(true)
  })

  it('ends with its signal', async () => {
    const controller = new AbortController()
    const sleeping = new Wakeup().sleep(MONTH_MS, controller.signal)
    controller.abort()

    await sleeping
    expect(vi.getTimerCount()).toBe(0)
  })
})

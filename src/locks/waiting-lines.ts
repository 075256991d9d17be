import { Wakeup } from '../base/wakeup.ts'
import type { LockId } from './lock-options.ts'
import { topicOf } from './topic.ts'

/** Tells of releases elsewhere. */
export interface ReleaseHints {
  on(topic: string, wake: () => void): () => void
}

/** A place in a line. */
export interface Place {
  /** Resolves when it is the first, or `signal` aborts. */
  isFirst(signal: AbortSignal): Promise<void>
  /** Sleeps until the lock may be free, `ms` have passed, or `signal` aborts. A wake in between is kept. */
  sleep(ms: number, signal: AbortSignal): Promise<void>
  /** Leaves the line; the next becomes the first. */
  leave(): void
  /** The shortest time between two tries that anybody in the line has asked for. */
  readonly retryMs: number
}

/**
 * Who waits for a lock in this process stands in a line, in the order of arrival. Only the first asks PostgreSQL, so that a
 * hundred waiters cost what one does.
 */
export class WaitingLines {
  readonly #hints: ReleaseHints
  readonly #lines = new Map<string, Line>()

  constructor(hints: ReleaseHints) {
    this.#hints = hints
  }

  /** The lock may be free: the first should look. */
  wake(lock: LockId): void {
    if (this.#lines.size > 0) this.#lines.get(topicOf(lock))?.wake()
  }

  enter(lock: LockId, retryMs: number): Place {
    const topic = topicOf(lock)
    const line = this.#lines.get(topic) ?? new Line()
    if (!this.#lines.has(topic)) {
      this.#lines.set(topic, line)
      line.unsubscribe = this.#hints.on(topic, () => line.wake())
    }
    const wakeup = new Wakeup()
    const waiter = { wakeup, retryMs }
    // Who is the first sleeps for as long as it knew of, and now that may be too long.
    if (retryMs < line.retryMs) line.wake()
    line.waiters.push(waiter)
    return {
      get retryMs() {
        return line.retryMs
      },
      isFirst: async (signal) => {
        while (line.waiters[0] !== waiter && !signal.aborted) await wakeup.sleep(MAX_SLEEP_MS, signal)
      },
      sleep: async (ms, signal) => await wakeup.sleep(ms, signal),
      leave: () => this.#leave(topic, line, waiter),
    }
  }

  #leave(topic: string, line: Line, waiter: Waiter): void {
    const place = line.waiters.indexOf(waiter)
    if (place < 0) return
    line.waiters.splice(place, 1)
    if (line.waiters.length === 0) {
      line.unsubscribe()
      this.#lines.delete(topic)
    } else if (place === 0) line.wake()
  }
}

/** A place is left at the latest when its wait is over; this is for the timer. */
const MAX_SLEEP_MS = 86_400_000

interface Waiter {
  readonly wakeup: Wakeup
  readonly retryMs: number
}

class Line {
  readonly waiters: Waiter[] = []
  unsubscribe: () => void = () => {}

  get retryMs(): number {
    return Math.min(...this.waiters.map((waiter) => waiter.retryMs))
  }

  wake(): void {
    this.waiters[0]?.wakeup.wake()
  }
}

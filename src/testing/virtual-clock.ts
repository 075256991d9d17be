import { checkNumber } from '../base/check.ts'
import { limits } from '../base/limits.ts'

/** The part of PGlite through which each message to PostgreSQL goes, without a wait in between. */
export interface SynchronousPglite {
  execProtocolRawSync(message: Uint8Array): Uint8Array
}

/** The time of a test. */
export interface TestClock {
  /** What PostgreSQL's clock shows: the real time and all that was added by {@link advance}. */
  now(): Date
  /**
   * Lets `ms` milliseconds pass, 0 to about 100 years, at once: for PostgreSQL, and so for everything that is decided there.
   * Retries, snoozes, `runAt`, leases, holds of effects and idempotency keys fall due, and `now()` in statements of yours
   * moves along. `Date` and timers in the test's own process stay as they are. Runs nothing: call `drain` for that.
   *
   * @throws {InvalidArgumentError} `ms` is out of range.
   */
  advance(ms: number): Promise<void>
}

type StartTimer = (fn: () => void, ms?: number) => NodeJS.Timeout

/**
 * The clock of an embedded PostgreSQL. It reads the time of its process, by `Date.now`, and only while a message to it is
 * handled, or a timer of its own fires; both are synchronous. So for just that long `Date.now` gives the test's time, and
 * nothing else can run meanwhile. Everything that PostgreSQL decides by time is moved by this, whatever table it is in: there
 * is no list of columns to keep.
 */
export class VirtualClock implements TestClock {
  #offsetMs = 0

  /** Makes `instance` go by this clock. */
  drive(instance: SynchronousPglite): void {
    const exec = instance.execProtocolRawSync.bind(instance)
    instance.execProtocolRawSync = (message) => this.#inTestTime(() => exec(message))
  }

  /** Back to the real time. */
  reset(): void {
    this.#offsetMs = 0
  }

  now(): Date {
    return new Date(Date.now() + this.#offsetMs)
  }

  async advance(ms: number): Promise<void> {
    this.#offsetMs += checkNumber('ms', ms, { ...limits.delayMs, integer: false })
  }

  #inTestTime<T>(act: () => T): T {
    const { now } = Date
    const timers = globalThis as { setTimeout: StartTimer }
    const start = timers.setTimeout
    Date.now = () => now.call(Date) + this.#offsetMs
    // PostgreSQL's own timers have to fire in the time they were set in, or they would set themselves again for the
    // difference; and an idle database is no reason for a process of tests to stay.
    timers.setTimeout = (fn, ms) => {
      const timer = start(() => this.#inTestTime(fn), ms)
      timer.unref?.()
      return timer
    }
    try {
      return act()
    } finally {
      Date.now = now
      timers.setTimeout = start
    }
  }
}

import { AsyncResource } from 'node:async_hooks'
import type { Driver, Listener } from './driver.ts'

export interface HintsOptions {
  readonly driver: Driver
  readonly channel: string
  /** False behind a transaction pooler, where nothing can be listened to: whoever waits looks for itself. */
  readonly listens: boolean
}

/**
 * Wakes who waits for something to happen in the database: who wants a lock, who watches keys. One listener for all of
 * them, opened when the first waits and kept until `close`.
 *
 * Only ever a hint: with every one of them lost, whoever waits finds the same by looking at known intervals.
 */
export class Hints {
  readonly #options: HintsOptions
  /** The listener outlives the call that opens it, and must not count as inside that caller's transaction. */
  readonly #outside = new AsyncResource('holdfast.hints')
  readonly #waiting = new Map<string, Set<() => void>>()
  #listener: Listener | undefined
  #closed = false

  constructor(options: HintsOptions) {
    this.#options = options
  }

  /** False while hints cannot come: look more often then. */
  get up(): boolean {
    return this.#listener?.up ?? false
  }

  /**
   * Calls `wake` at each notification of `topic`, and when the listener has come up (again), since what was announced
   * before is lost. Returns how to end it. `wake` must not throw.
   */
  on(topic: string, wake: () => void): () => void {
    const known = this.#waiting.get(topic) ?? new Set()
    this.#waiting.set(topic, known)
    known.add(wake)
    this.#listen()
    return () => {
      known.delete(wake)
      if (known.size === 0 && this.#waiting.get(topic) === known) this.#waiting.delete(topic)
    }
  }

  async close(): Promise<void> {
    this.#closed = true
    await this.#listener?.close()
  }

  #listen(): void {
    const { driver, channel, listens } = this.#options
    if (!listens || this.#closed) return
    this.#listener ??= this.#outside.runInAsyncScope(() =>
      driver.listen(channel, {
        onNotify: (topic) => this.#wake(this.#waiting.get(topic)),
        onUp: () => {
          for (const waiting of this.#waiting.values()) this.#wake(waiting)
        },
        onDown: () => {},
      }),
    )
  }

  /** Over a copy: who is woken may end its wait, or begin another. */
  #wake(waiting: ReadonlySet<() => void> | undefined): void {
    const now = [...(waiting ?? [])]
    for (const wake of now) wake()
  }
}

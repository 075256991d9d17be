import { startTimer } from '../base/sleep.ts'

/**
 * When a wait ends without what was waited for: its time is over, its caller's signal aborts, or the application closes. One
 * signal for all of them, that leaves nothing behind.
 */
export class GivingUp {
  readonly #controller = new AbortController()
  readonly #clear: (() => void)[] = []

  constructor(waitMs: number | undefined, ...signals: readonly (AbortSignal | undefined)[]) {
    const giveUp = () => this.#controller.abort()
    if (waitMs !== undefined) this.#clear.push(startTimer(waitMs, giveUp))
    // Not AbortSignal.any: on Node 20 each one leaks into a long-lived signal.
    for (const signal of signals) {
      if (signal === undefined) continue
      if (signal.aborted) giveUp()
      signal.addEventListener('abort', giveUp)
      this.#clear.push(() => signal.removeEventListener('abort', giveUp))
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** `undefined` once it is given up, if `promise` has not ended before. What becomes of that is for others to look at. */
  async unless<T>(promise: Promise<T>): Promise<T | undefined> {
    const { signal } = this
    if (signal.aborted) {
      promise.catch(() => {})
      return undefined
    }
    let giveUp = () => {}
    const givenUp = new Promise<undefined>((resolve) => {
      giveUp = () => resolve(undefined)
      signal.addEventListener('abort', giveUp)
    })
    try {
      return await Promise.race([promise, givenUp])
    } finally {
      signal.removeEventListener('abort', giveUp)
    }
  }

  end(): void {
    for (const clear of this.#clear) clear()
  }
}

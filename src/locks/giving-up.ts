import { startTimer } from '../base/sleep.ts'

/**
 * When a wait ends without what was waited for: its time is over, its caller's signal aborts, or the application closes. One
 * signal for all of them, that leaves nothing behind.
 */
export class GivingUp {
  readonly #controller = new AbortController()
  readonly #all: Set<GivingUp>
  readonly #stopTimer: (() => void) | undefined
  readonly #asked: AbortSignal | undefined
  readonly #onAbort = () => this.giveUp()

  /** `all` has it until its end, to be told when the application closes. No `waitMs`: for as long as it takes. */
  constructor(parts: {
    readonly waitMs: number | undefined
    readonly signal: AbortSignal | undefined
    readonly all: Set<GivingUp>
  }) {
    this.#all = parts.all
    this.#all.add(this)
    if (parts.waitMs !== undefined) this.#stopTimer = startTimer(parts.waitMs, this.#onAbort)
    // Not AbortSignal.any: on Node 20 each one leaks into a long-lived signal.
    this.#asked = parts.signal
    this.#asked?.addEventListener('abort', this.#onAbort)
    if (this.#asked?.aborted) this.giveUp()
  }

  giveUp(): void {
    this.#controller.abort()
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
    this.#all.delete(this)
    this.#stopTimer?.()
    this.#asked?.removeEventListener('abort', this.#onAbort)
  }
}

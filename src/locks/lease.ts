import { monotonicMs } from '../base/clock.ts'
import { type LockLoss, LockLostError } from '../base/errors.ts'

/**
 * How long a holder may count on its lock: by a clock that nobody can set, from before PostgreSQL was asked, so that it is
 * over here before it is over there.
 *
 *     counting ──► over       `lose`, or the time is up; the signal is aborted, and it never counts again
 *        └───────► ended      `end`: the holder gave it back; the signal stays as it is
 *
 * Keeps no process alive.
 */
export class Lease {
  readonly #facts: { readonly resource: string; readonly fencingToken: bigint | undefined }
  readonly #controller = new AbortController()
  #untilMs = 0
  #timer: NodeJS.Timeout | undefined
  #ended = false

  constructor(facts: { readonly resource: string; readonly fencingToken: bigint | undefined }) {
    this.#facts = facts
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Also right while the event loop stood still and no timer could fire. */
  get counts(): boolean {
    return !this.#ended && !this.signal.aborted && monotonicMs() < this.#untilMs
  }

  /** Until when it counts, by the monotonic clock. */
  get untilMs(): number {
    return this.#untilMs
  }

  /** Counts until `untilMs` of the monotonic clock. */
  count(untilMs: number): void {
    if (this.#ended || this.signal.aborted) return
    this.#untilMs = untilMs
    this.#arm()
  }

  lose(why: LockLoss): void {
    if (this.#ended || this.signal.aborted) return
    clearTimeout(this.#timer)
    this.#controller.abort(new LockLostError({ ...this.#facts, why }))
  }

  end(): void {
    this.#ended = true
    clearTimeout(this.#timer)
  }

  /** Anew if it fires early, as timers may by a millisecond. A lease is at most a day, which a timer can hold. */
  #arm(): void {
    clearTimeout(this.#timer)
    const leftMs = this.#untilMs - monotonicMs()
    if (leftMs <= 0) return this.lose('expired')
    this.#timer = setTimeout(() => this.#arm(), Math.ceil(leftMs))
    this.#timer.unref()
  }
}

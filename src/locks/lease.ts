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
  #untilMs = 0
  #ended = false
  #loss: LockLoss | undefined
  /** Made, and a timer with it, when somebody asks for the signal: most locks are released before anybody does. */
  #controller: AbortController | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(facts: { readonly resource: string; readonly fencingToken: bigint | undefined }) {
    this.#facts = facts
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#loss !== undefined) this.#abort(this.#loss)
      else if (!this.#ended) this.#arm()
    }
    return this.#controller.signal
  }

  /** Also right while the event loop stood still and no timer could fire. */
  get counts(): boolean {
    if (this.#ended || this.#loss !== undefined) return false
    if (monotonicMs() < this.#untilMs) return true
    this.lose('expired')
    return false
  }

  /** Until when it counts, by the monotonic clock. */
  get untilMs(): number {
    return this.#untilMs
  }

  /** Counts until `untilMs` of the monotonic clock. */
  count(untilMs: number): void {
    if (this.#ended || this.#loss !== undefined) return
    this.#untilMs = untilMs
    if (this.#controller !== undefined) this.#arm()
  }

  lose(why: LockLoss): void {
    if (this.#ended || this.#loss !== undefined) return
    this.#loss = why
    if (this.#controller !== undefined) this.#abort(why)
  }

  end(): void {
    this.#ended = true
    clearTimeout(this.#timer)
  }

  #abort(why: LockLoss): void {
    clearTimeout(this.#timer)
    this.#controller?.abort(new LockLostError({ ...this.#facts, why }))
  }

  /** Anew if it fires early, as timers may by a millisecond. A lease is at most a day, which a timer can hold. */
  #arm(): void {
    clearTimeout(this.#timer)
    if (!this.counts) return
    this.#timer = setTimeout(() => this.#arm(), Math.ceil(this.#untilMs - monotonicMs()))
    this.#timer.unref()
  }
}

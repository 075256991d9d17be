/** What extends a lease by itself. */
export interface RenewalOptions {
  readonly leaseMs: number
  /** False: the lock is lost, and there is nothing more to renew. */
  readonly extend: () => Promise<boolean>
  /** There is nothing more to renew. */
  readonly onEnd: () => void
}

/** A lease is extended when a third of it has passed, so that two extensions may fail. */
const PARTS = 3
/** After a failed one, so many tries come in the time of one. */
const TRIES = 5

/**
 * Extends a lease again and again until `stop`, or until it is lost. A failure is tried again soon: whether the lock is still
 * held is for the lease to say, which goes on counting. Never throws, and keeps no process alive.
 */
export class Renewal {
  readonly #options: RenewalOptions
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(options: RenewalOptions) {
    this.#options = options
    this.#after(options.leaseMs / PARTS)
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
    this.#options.onEnd()
  }

  #after(ms: number): void {
    this.#timer = setTimeout(() => void this.#beat(), ms)
    this.#timer.unref()
  }

  async #beat(): Promise<void> {
    const { leaseMs, extend } = this.#options
    const isHeld = await extend().catch(() => undefined)
    if (this.#stopped) return
    if (isHeld === false) return this.stop()
    this.#after(isHeld === true ? leaseMs / PARTS : leaseMs / PARTS / TRIES)
  }
}

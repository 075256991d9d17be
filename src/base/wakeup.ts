import { startTimer } from './sleep.ts'

/**
 * Lets one sleeper be woken early. A `wake` while nobody sleeps is kept for the next `sleep`, so a notification
 * that arrives during a claim is never lost.
 */
export class Wakeup {
  #pending = false
  #endSleep: (() => void) | undefined

  wake(): void {
    this.#pending = true
    this.#endSleep?.()
  }

  /** Sleeps until `wake`, `ms` milliseconds of any length, or `signal`; then forgets earlier wakes. Never rejects. */
  async sleep(ms: number, signal: AbortSignal): Promise<void> {
    if (!this.#pending && !signal.aborted && ms > 0) {
      await new Promise<void>((resolve) => {
        const stop = startTimer(ms, end)
        // Not AbortSignal.any: on Node 20 each one leaks into the long-lived `signal`.
        signal.addEventListener('abort', end)
        this.#endSleep = end
        function end(): void {
          stop()
          signal.removeEventListener('abort', end)
          resolve()
        }
      })
    }
    this.#pending = false
    this.#endSleep = undefined
  }
}

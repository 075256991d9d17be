/** The longest wait a timer of Node takes; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1

/**
 * Sleeps `ms` milliseconds of any length, or until `signal` aborts. Never rejects and leaves no timer:
 * look at `signal.aborted` afterwards.
 */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted || !(ms > 0)) return Promise.resolve()
  return new Promise((resolve) => {
    const stop = startTimer(ms, end)
    // Not AbortSignal.any: on Node 20 each one leaks into the long-lived `signal`.
    signal?.addEventListener('abort', end)
    function end(): void {
      stop()
      signal?.removeEventListener('abort', end)
      resolve()
    }
  })
}

/**
 * Calls `fn` once after `ms` milliseconds of any length, in parts that a timer can hold.
 *
 * @returns A function that ends the wait; to call it again does nothing.
 */
export function startTimer(ms: number, fn: () => void): () => void {
  let timer: NodeJS.Timeout
  const wait = (left: number): void => {
    const part = Math.min(left, MAX_TIMER_MS)
    timer = setTimeout(() => (left > part ? wait(left - part) : fn()), part)
  }
  wait(ms)
  return () => clearTimeout(timer)
}

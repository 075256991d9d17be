/** What a signal asks for: first to stop, then to abort what still runs, then to end at once. */
export interface SignalListener {
  readonly onStop: (signal: NodeJS.Signals) => void
  readonly onAbort: (signal: NodeJS.Signals) => void
  readonly onEnd: (signal: NodeJS.Signals) => void
}

const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const

/**
 * Listens for SIGTERM, SIGINT and SIGHUP, counted together: the first is graceful, the second hurries, the third ends.
 *
 * @returns A function that ends it; the process then dies of a signal as it would without.
 */
export function listenToSignals(listener: SignalListener): () => void {
  const steps = [listener.onStop, listener.onAbort, listener.onEnd]
  let received = 0
  const take = (signal: NodeJS.Signals) => {
    const step = steps[Math.min(received, steps.length - 1)]
    received += 1
    step?.(signal)
  }
  for (const signal of SIGNALS) process.on(signal, take)
  return () => {
    for (const signal of SIGNALS) process.off(signal, take)
  }
}

import { sleep } from '../../base/sleep.ts'
import type { Wakeup } from '../../base/wakeup.ts'

export interface LeaseCloserOptions {
  readonly hasFinished: () => boolean
  readonly closeFinished: () => Promise<void>
  /** Woken when there may be finished leases. */
  readonly wakeup: Wakeup
  readonly onError: (error: unknown, retryInMs: number) => void
}

/** Leases that end within this time are ended by one statement. */
const GATHER_MS = 200
const RETRY_MS = 1000

/**
 * Ends leases that were settled in parts, many at a time: nobody waits for it. Never rejects; returns when `signal`
 * aborts.
 */
export async function runLeaseCloser(options: LeaseCloserOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    if (!options.hasFinished()) {
      await options.wakeup.sleep(Number.POSITIVE_INFINITY, signal)
      await sleep(GATHER_MS, signal)
      continue
    }
    try {
      await options.closeFinished()
    } catch (error) {
      options.onError(error, RETRY_MS)
      await sleep(RETRY_MS, signal)
    }
  }
}

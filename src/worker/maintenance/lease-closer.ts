import { sleep } from '../../base/sleep.ts'
import type { Wakeup } from '../../base/wakeup.ts'

export interface LeaseCloserOptions {
  readonly hasFinished: () => boolean
  /** Gives how many are held by others, and have to be tried again. */
  readonly closeFinished: () => Promise<number>
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
      if ((await options.closeFinished()) > 0) await sleep(RETRY_MS, signal)
    } catch (error) {
      options.onError(error, RETRY_MS)
      await sleep(RETRY_MS, signal)
    }
  }
}

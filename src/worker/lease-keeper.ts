import { monotonicMs } from '../base/clock.ts'
import { sleep } from '../base/sleep.ts'

/** A job that was cancelled while it executes, and why. */
export type CancelledJob = readonly [jobId: string, reason: string | null]

/** What a heartbeat was answered. */
export type Renewal =
  | { readonly kind: 'renewed'; readonly cancelled: readonly CancelledJob[] }
  /** The worker's row is gone: it was declared dead, and what it held belongs to others. */
  | { readonly kind: 'gone' }

export interface LeaseKeeperOptions {
  readonly leaseMs: number
  readonly renew: () => Promise<Renewal>
  /** Jobs of this worker that were cancelled while they execute. */
  readonly onCancelled: (jobs: readonly CancelledJob[]) => void
  /** The leases are lost, or can no longer be known to be held. The keeper ends. */
  readonly onLost: (why: string) => void
  readonly onError: (error: unknown, retryInMs: number) => void
}

/**
 * Renews the leases of one life of a worker at once and then every third of `leaseMs`, until `signal` aborts or
 * they are lost.
 *
 * Why it is right: PostgreSQL counts the lease from the moment it ran the renewal, which is not before the
 * renewal was sent. So trust is counted from the moment of *sending* the last one that was answered, by a clock
 * of this process that only grows, and ends at `leaseMs` after it: this process always stops believing before
 * PostgreSQL lets others take over. An error proves nothing; renewals are tried again, faster, until then.
 */
export async function runLeaseKeeper(options: LeaseKeeperOptions, signal: AbortSignal): Promise<void> {
  const { leaseMs } = options
  const everyMs = leaseMs / 3
  let trustedUntilMs = monotonicMs() + leaseMs
  let failures = 0

  for (let sleepMs = 0; !signal.aborted; sleepMs = failures === 0 ? everyMs : retryMs(leaseMs, failures)) {
    await sleep(sleepMs, signal)
    if (signal.aborted) return
    const sentMs = monotonicMs()
    // Woken late: a suspended machine or a stopped process. The answer decides, not the clock.
    // No longer than the trust: an answer that does not come must not keep this process believing.
    const waitMs = Math.max(trustedUntilMs - sentMs, everyMs)
    const renewal = await within(waitMs, attempt(options, failures))
    if (signal.aborted) return
    if (renewal === undefined) failures += 1
    else if (renewal.kind === 'gone')
      return options.onLost('the worker was declared dead after its lease ran out')
    else {
      failures = 0
      trustedUntilMs = sentMs + leaseMs
      if (renewal.cancelled.length > 0) options.onCancelled(renewal.cancelled)
    }
    if (monotonicMs() >= trustedUntilMs)
      return options.onLost('the database could not be reached for a whole lease')
  }
}

async function within<T>(ms: number, answer: Promise<T>): Promise<T | undefined> {
  const answered = new AbortController()
  const first = await Promise.race([answer, sleep(ms, answered.signal).then(() => undefined)])
  answered.abort()
  return first
}

function retryMs(leaseMs: number, failures: number): number {
  return Math.min(leaseMs / 6, 100 * 2 ** Math.min(failures, 10))
}

async function attempt(options: LeaseKeeperOptions, failures: number): Promise<Renewal | undefined> {
  try {
    return await options.renew()
  } catch (error) {
    options.onError(error, retryMs(options.leaseMs, failures + 1))
    return undefined
  }
}

import { sleep } from '../../base/sleep.ts'
import { type Database, runOne } from '../../driver/operation.ts'
import { findReadyBehind } from '../../jobs/sql/find-ready-behind.ts'
import { type LowWater, PRIORITIES } from '../low-water.ts'

export interface SweeperOptions {
  readonly database: Database
  readonly queues: readonly string[]
  readonly lowWater: LowWater
  /** A job was found behind a mark. */
  readonly onFound: (queue: string) => void
  readonly onError: (error: unknown) => void
}

/** What a window is to cost on the server, and the share of time that sweeping may take. */
const WINDOW_MS = 10
const SHARE = 0.05
const FIRST_WINDOW = 20_000n
/** Longest pause between two turns. */
const TURN_MS = 1000
/** A whole turn that costs less says that there is nothing to walk over any more. */
const QUICK_TURN_MS = 5

/**
 * While claims start at marks, looks for jobs behind them: through every class from the start to its mark, window
 * by window, never more than 5 % of the time, then again. So a job behind a mark waits for a turn at most: a
 * second without dead entries, some 4 s with a million. When a turn was quick, claims look at everything again.
 * Never rejects; returns when `signal` aborts.
 */
export async function runSweeper(options: SweeperOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await sleep(TURN_MS, signal)
    if (signal.aborted || !options.lowWater.isMarked) continue
    try {
      const costMs = await sweep(options, signal)
      if (costMs < QUICK_TURN_MS) options.lowWater.clear()
    } catch (error) {
      options.onError(error)
    }
  }
}

async function sweep(options: SweeperOptions, signal: AbortSignal): Promise<number> {
  let totalMs = 0
  for (const queue of options.queues) {
    for (const priority of PRIORITIES) totalMs += await sweepClass(options, { queue, priority }, signal)
  }
  return totalMs
}

async function sweepClass(
  { database, lowWater, onFound }: SweeperOptions,
  { queue, priority }: { readonly queue: string; readonly priority: number },
  signal: AbortSignal,
): Promise<number> {
  const end = lowWater.behind(queue, priority)
  let window = FIRST_WINDOW
  let totalMs = 0
  let sinceRestMs = 0
  for (let after = 0n; after < end && !signal.aborted; ) {
    const upto = after + window < end ? after + window : end
    const { seq, elapsedMs } = await runOne(database, findReadyBehind, { queue, priority, after, upto })
    totalMs += elapsedMs
    sinceRestMs += elapsedMs
    if (seq !== null) {
      lowWater.found({ queue, priority, after: seq - 1n, lastPriority: priority, upto })
      onFound(queue)
    }
    after = upto
    if (elapsedMs < WINDOW_MS / 2) window *= 2n
    else if (elapsedMs > WINDOW_MS && window > 1000n) window /= 2n
    if (sinceRestMs >= WINDOW_MS) {
      await sleep(sinceRestMs / SHARE, signal)
      sinceRestMs = 0
    }
  }
  return totalMs
}

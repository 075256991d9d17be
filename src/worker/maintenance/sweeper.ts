import { sleep } from '../../base/sleep.ts'
import { type Database, runOne } from '../../driver/operation.ts'
import { findReadyBehind } from '../../jobs/sql/find-ready-behind.ts'
import { type ClassRange, type LowWater, PRIORITIES } from '../low-water.ts'

export interface SweeperOptions {
  readonly database: Database
  readonly queues: readonly string[]
  readonly lowWater: LowWater
  /** A job was found behind a mark. */
  readonly onFound: (queue: string) => void
  readonly onError: (error: unknown) => void
}

/** What a window is to cost on the server. */
const WINDOW_MS = 10
/** The share of time that turns may take, and that looking where a transaction ended late may. */
const TURN_SHARE = 0.02
const LATE_SHARE = 0.25
const FIRST_WINDOW = 20_000n
/** Longest pause between two turns. */
const TURN_MS = 1000
/** A whole turn that costs less says that there is nothing to walk over any more. */
const QUICK_TURN_MS = 5

/**
 * While claims start at marks, looks for jobs behind them: where a transaction ended late, soon, and through every
 * class from the start to its mark, window by window, never more than 2 % of the time, then again. So a job behind a
 * mark that nobody told of waits for a turn at most: a second without dead entries, some 10 s with a million. When a turn
 * was quick, claims look at everything again. Never rejects; returns when `signal` aborts.
 */
export async function runSweeper(options: SweeperOptions, signal: AbortSignal): Promise<void> {
  const sweeper = new Sweeper(options, signal)
  while (!signal.aborted) {
    await sleep(TURN_MS, signal)
    if (signal.aborted || !options.lowWater.isMarked) continue
    try {
      const costMs = await sweeper.turn()
      if (costMs < QUICK_TURN_MS) options.lowWater.clear()
    } catch (error) {
      options.onError(error)
    }
  }
}

class Sweeper {
  readonly #options: SweeperOptions
  readonly #signal: AbortSignal
  #sinceRestMs = 0

  constructor(options: SweeperOptions, signal: AbortSignal) {
    this.#options = options
    this.#signal = signal
  }

  /** Goes through everything behind the marks; returns what that cost the server, in milliseconds. */
  async turn(): Promise<number> {
    const { lowWater, queues } = this.#options
    let costMs = 0
    for (const queue of queues) {
      for (const priority of PRIORITIES) {
        const upto = lowWater.behind(queue, priority)
        const range = { queue, priority, after: 0n, lastPriority: priority, upto }
        costMs += await this.#sweep(range, TURN_SHARE, () => this.#sweepLate())
      }
    }
    return costMs
  }

  async #sweepLate(): Promise<void> {
    for (const range of this.#options.lowWater.takeLate()) {
      await this.#sweep(range, LATE_SHARE, async () => {})
    }
  }

  async #sweep(range: ClassRange, share: number, beforeWindow: () => Promise<void>): Promise<number> {
    const { database, lowWater, onFound } = this.#options
    const { queue, priority, upto: end } = range
    let window = FIRST_WINDOW
    let totalMs = 0
    for (let { after } = range; after < end && !this.#signal.aborted; ) {
      await beforeWindow()
      const upto = after + window < end ? after + window : end
      const { seq, elapsedMs } = await runOne(database, findReadyBehind, { queue, priority, after, upto })
      totalMs += elapsedMs
      if (seq !== null) {
        lowWater.found({ ...range, after: seq - 1n, upto })
        onFound(queue)
      }
      after = upto
      if (elapsedMs < WINDOW_MS / 2) window *= 2n
      else if (elapsedMs > WINDOW_MS && window > 1000n) window /= 2n
      await this.#rest(elapsedMs, share)
    }
    return totalMs
  }

  /** Sleeps as long as what was done since the last sleep asks for. */
  async #rest(elapsedMs: number, share: number): Promise<void> {
    this.#sinceRestMs += elapsedMs
    if (this.#sinceRestMs < WINDOW_MS) return
    const restMs = this.#sinceRestMs / share
    this.#sinceRestMs = 0
    await sleep(restMs, this.#signal)
  }
}

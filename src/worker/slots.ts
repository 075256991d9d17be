import { monotonicMs } from '../base/clock.ts'
import type { ClaimedJob } from './claimed-job.ts'

/** Work that is claimed ahead of free slots: what runs within this time at the recent speed of the queue's jobs. */
const AHEAD_MS = 20
/** Most jobs claimed ahead for one queue. */
const MAX_AHEAD = 1000
/** Weight of the newest duration in the running mean. */
const DURATION_WEIGHT = 0.1
/** Shorter durations than this are not told apart: a clock read and a promise cost as much. */
const MIN_DURATION_MS = 0.005

/**
 * The running and the buffered jobs of one queue in this process.
 *
 * A claimed job is started at once if a slot is free, else it waits in the buffer, in order. The buffer holds
 * what the slots will take within about 20 ms, judged by how long recent jobs took: none for jobs that take
 * longer, so that a slow job delays nobody but its own slot. What waits longer than 100 ms goes back
 * ({@link takeStale}). Jobs that need care are only ever claimed for free slots and start first.
 */
export class Slots {
  readonly queue: string
  readonly concurrency: number
  readonly #start: (job: ClaimedJob) => void
  readonly #buffer: ClaimedJob[] = []
  #bufferHead = 0
  #running = 0
  #expected = 0
  #meanMs: number | undefined
  /** When a slot last took or gave back a job, while something waits. */
  #lastMoveMs = 0

  constructor(queue: string, concurrency: number, start: (job: ClaimedJob) => void) {
    this.queue = queue
    this.concurrency = concurrency
    this.#start = start
  }

  get running(): number {
    return this.#running
  }

  get buffered(): number {
    return this.#buffer.length - this.#bufferHead
  }

  /** Slots that would take a job now. */
  get free(): number {
    return Math.max(0, this.concurrency - this.#running - this.buffered - this.#expected)
  }

  /** How many jobs beyond the free slots may be claimed for this queue. */
  get ahead(): number {
    if (this.#meanMs === undefined || this.#meanMs > AHEAD_MS) return 0
    return Math.min(
      MAX_AHEAD,
      Math.floor((this.concurrency * AHEAD_MS) / Math.max(this.#meanMs, MIN_DURATION_MS)),
    )
  }

  /** How many jobs to ask for: 0 while enough is at hand. */
  get wanted(): number {
    const ahead = this.ahead
    const missing = this.concurrency + ahead - this.#running - this.buffered - this.#expected
    return this.free > 0 || missing * 2 > ahead ? Math.max(0, missing) : 0
  }

  /** So many claimed jobs are about to be added: counted as if they were here. */
  expect(count: number): void {
    this.#expected = count
  }

  /** Takes a claimed job: starts it, or keeps it for the next free slot. */
  add(job: ClaimedJob): void {
    if (this.#expected > 0) this.#expected -= 1
    if (this.#running < this.concurrency && this.buffered === 0) this.#run(job)
    else {
      if (this.buffered === 0) this.#lastMoveMs = monotonicMs()
      this.#buffer.push(job)
    }
  }

  /** To be called once for each started job when its slot is free again. `durationMs`: how long it ran, if it did. */
  finished(durationMs?: number): void {
    this.#running -= 1
    if (durationMs !== undefined) {
      this.#meanMs =
        this.#meanMs === undefined ? durationMs : this.#meanMs + (durationMs - this.#meanMs) * DURATION_WEIGHT
    }
    this.#lastMoveMs = monotonicMs()
    while (this.#running < this.concurrency && this.buffered > 0) this.#run(this.#shift())
  }

  /** The whole buffer, if no slot has moved for `staleMs`: those jobs are somebody else's chance. */
  takeStale(staleMs: number): readonly ClaimedJob[] {
    if (this.buffered === 0 || monotonicMs() - this.#lastMoveMs < staleMs) return []
    // The estimate that filled the buffer was wrong: until a job ends, nothing is claimed ahead.
    this.#meanMs = undefined
    return this.takeBuffer()
  }

  takeBuffer(): readonly ClaimedJob[] {
    const waiting = this.#buffer.slice(this.#bufferHead)
    this.#buffer.length = 0
    this.#bufferHead = 0
    return waiting
  }

  #run(job: ClaimedJob): void {
    this.#running += 1
    this.#start(job)
  }

  /** Amortised: an array's own `shift` moves all that follows. */
  #shift(): ClaimedJob {
    const job = this.#buffer[this.#bufferHead] as ClaimedJob
    this.#bufferHead += 1
    if (this.#bufferHead * 2 > this.#buffer.length) {
      this.#buffer.splice(0, this.#bufferHead)
      this.#bufferHead = 0
    }
    return job
  }
}

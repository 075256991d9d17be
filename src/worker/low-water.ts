import { limits } from '../base/limits.ts'

/** How old a mark is before it is used: transactions that commit within this time of their insert are not missed. */
const LAG_MS = 50
/** A claim is slow if it takes longer than this, and this for each job it handled, on the server. */
const SLOW_MS = 4
const SLOW_PER_JOB_MS = 0.02
/** A claim that handled so many jobs leaves that many dead entries in front of the next one. */
const BULK = 200
/** Slow or bulky claims in a row before marks are used. */
const SLOW_CLAIMS = 3

export const PRIORITIES: readonly number[] = Array.from(
  { length: limits.priority.max + 1 },
  (_, priority) => priority,
)
/** The end of every class. */
export const LAST = 2n ** 63n - 1n

/** A stretch of a queue, in the order of priority and place: behind (priority, after), up to (lastPriority, upto). */
export interface ClassRange {
  readonly queue: string
  readonly priority: number
  readonly after: bigint
  readonly lastPriority: number
  readonly upto: bigint
}

interface Mark {
  readonly atMs: number
  readonly seq: bigint
}

/**
 * Remembers, for each class, up to which place in the queue everything was taken, so that a claim need not walk
 * again over dead index entries that an old snapshot keeps alive.
 *
 * Two modes. *Plain*, the normal one: claims look at everything. *Marked*, while claims are measurably slow, or so
 * large that they leave dead entries faster than these are cleaned up: they start at a mark, which is at least 50 ms old. What is behind the marks (a transaction that took longer
 * to commit, a job that came back to its old place) is found by the sweeper, which looks through the range in
 * small windows and reports with {@link found}; the next claim then looks there. The marks never decide what may
 * run, only where to look first.
 */
export class LowWater {
  readonly #marks = new Map<string, Mark[]>()
  readonly #found = new Map<string, ClassRange>()
  #slowClaims = 0
  #isMarked = false

  get isMarked(): boolean {
    return this.#isMarked
  }

  /** Where a claim of `queues` is to look: at each as a whole, or, with marks, at one priority after the other. */
  ranges(queues: readonly string[], nowMs: number): readonly ClassRange[] {
    if (!this.#isMarked) {
      return queues.map((queue) => ({
        queue,
        priority: 0,
        after: 0n,
        lastPriority: limits.priority.max,
        upto: LAST,
      }))
    }
    return queues.flatMap((queue) => PRIORITIES.map((priority) => this.#range(queue, priority, nowMs)))
  }

  /** Where the sweeper has to look: everything up to the mark. */
  behind(queue: string, priority: number, nowMs: number): bigint {
    return this.#markOf(keyOf(queue, priority), nowMs)
  }

  /** The sweeper saw a job of a class within a window. */
  found(range: ClassRange): void {
    this.#found.set(keyOf(range.queue, range.priority), range)
  }

  /** What a claim has seen: everything of the class up to `seq`, at `nowMs` at the latest. */
  saw(queue: string, priority: number, seq: bigint, nowMs: number): void {
    const key = keyOf(queue, priority)
    const marks = this.#marks.get(key) ?? []
    const last = marks.at(-1)
    if (last !== undefined && last.seq >= seq) return
    // Two marks are enough: one that is old enough, and one that will be.
    const usable = marks.filter((mark) => nowMs - mark.atMs >= LAG_MS).at(-1)
    const young = marks.filter((mark) => nowMs - mark.atMs < LAG_MS)
    this.#marks.set(key, [
      ...(usable ? [usable] : []),
      ...(young.length > 0 && young.length < 2 ? young : young.slice(0, 1)),
      { atMs: nowMs, seq },
    ])
  }

  /** How long a claim took on the server, and how many jobs it settled and claimed. */
  took(elapsedMs: number, jobs: number): void {
    if (this.#isMarked) return
    const isSlow = elapsedMs > SLOW_MS + SLOW_PER_JOB_MS * jobs
    this.#slowClaims = isSlow || jobs >= BULK ? this.#slowClaims + 1 : 0
    if (this.#slowClaims >= SLOW_CLAIMS) this.#isMarked = true
  }

  /** A sweep over everything was quick: dead entries are gone, and plain claims as good. */
  clear(): void {
    this.#isMarked = false
    this.#slowClaims = 0
    this.#found.clear()
  }

  #range(queue: string, priority: number, nowMs: number): ClassRange {
    const key = keyOf(queue, priority)
    const found = this.#found.get(key)
    if (found !== undefined) {
      this.#found.delete(key)
      return found
    }
    return { queue, priority, after: this.#markOf(key, nowMs), lastPriority: priority, upto: LAST }
  }

  #markOf(key: string, nowMs: number): bigint {
    const usable = this.#marks.get(key)?.filter((mark) => nowMs - mark.atMs >= LAG_MS)
    return usable?.at(-1)?.seq ?? 0n
  }
}

function keyOf(queue: string, priority: number): string {
  return `${priority} ${queue}`
}

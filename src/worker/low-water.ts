import { limits } from '../base/limits.ts'

/** A mark is used after so long even if a transaction of its time still runs. */
const GIVE_UP_MS = 500
/** Marks of a class that wait to be used. The oldest is used first, the newest last. */
const MAX_WAITING = 4
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

/** Which transactions a look saw the end of: all below `xmin`, and none from `xmax` on. */
export interface Snapshot {
  readonly xmin: bigint
  readonly xmax: bigint
}

interface Mark {
  readonly atMs: number
  readonly seq: bigint
  /** Transactions below it had begun when the mark was made. */
  readonly xmax: bigint
}

interface ClassMarks {
  /** Where looks start. */
  usable: bigint
  waiting: readonly Mark[]
}

/**
 * Remembers, for each class, up to which place in the queue everything was taken, so that a claim need not walk
 * again over dead index entries that an old snapshot keeps alive.
 *
 * Two modes. *Plain*, the normal one: claims look at everything. *Marked*, while claims are measurably slow, or so
 * large that they leave dead entries faster than these are cleaned up: they start at a mark. A mark is used once a
 * look has gone past it in which all transactions of its time had ended, so that what they enqueued was seen; half a
 * second later at the latest, since one of them may stay open for long. What is behind the marks for all that (such
 * a long one commits, a job comes back to its old place) is found by the sweeper, which looks through the range in
 * small windows and reports with {@link found}; the next claim then looks there. The marks never decide what may
 * run, only where to look first.
 */
export class LowWater {
  readonly #marks = new Map<string, ClassMarks>()
  readonly #found = new Map<string, ClassRange>()
  #slowClaims = 0
  #isMarked = false

  get isMarked(): boolean {
    return this.#isMarked
  }

  /** Where a claim of `queues` is to look: at each as a whole, or, with marks, at one priority after the other. */
  ranges(queues: readonly string[]): readonly ClassRange[] {
    if (!this.#isMarked) {
      return queues.map((queue) => ({
        queue,
        priority: 0,
        after: 0n,
        lastPriority: limits.priority.max,
        upto: LAST,
      }))
    }
    return queues.flatMap((queue) => PRIORITIES.map((priority) => this.#range(queue, priority)))
  }

  /** Where the sweeper has to look: everything up to the mark. */
  behind(queue: string, priority: number): bigint {
    return this.#markOf(keyOf(queue, priority))
  }

  /** The sweeper saw a job of a class within a window. */
  found(range: ClassRange): void {
    this.#found.set(keyOf(range.queue, range.priority), range)
  }

  /** What a look with `snapshot` has seen: everything of the class from its mark up to `seq`, at `nowMs` at the latest. */
  saw(queue: string, priority: number, seq: bigint, snapshot: Snapshot, nowMs: number): void {
    const key = keyOf(queue, priority)
    const { usable, waiting } = this.#marks.get(key) ?? { usable: 0n, waiting: [] }
    const isUsable = (mark: Mark) =>
      (mark.xmax <= snapshot.xmin && mark.seq <= seq) || nowMs - mark.atMs >= GIVE_UP_MS
    const still = waiting.filter((mark) => !isUsable(mark))
    const newest = still.at(-1)?.seq ?? 0n
    const added = seq > newest && seq > usable ? [{ atMs: nowMs, seq, xmax: snapshot.xmax }] : []
    this.#marks.set(key, {
      usable: waiting
        .filter(isUsable)
        .reduce((highest, mark) => (mark.seq > highest ? mark.seq : highest), usable),
      waiting: [...(still.length < MAX_WAITING ? still : still.slice(0, -1)), ...added],
    })
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

  #range(queue: string, priority: number): ClassRange {
    const key = keyOf(queue, priority)
    const found = this.#found.get(key)
    if (found !== undefined) {
      this.#found.delete(key)
      return found
    }
    return { queue, priority, after: this.#markOf(key), lastPriority: priority, upto: LAST }
  }

  #markOf(key: string): bigint {
    return this.#marks.get(key)?.usable ?? 0n
  }
}

function keyOf(queue: string, priority: number): string {
  return `${priority} ${queue}`
}

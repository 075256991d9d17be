import { limits } from '../base/limits.ts'
import { ClassMarks, type Snapshot } from './class-marks.ts'

/** A claim is slow if it takes longer than this, and this for each job it handled, on the server. */
const SLOW_MS = 4
const SLOW_PER_JOB_MS = 0.02
/** A claim that handled so many jobs leaves that many dead entries in front of the next one. */
const BULK = 200
/** Slow or bulky claims in a row before marks are used. */
const SLOW_CLAIMS = 3
/** Windows of a class that wait for a claim. For what is beyond, the sweeper comes by again. */
const MAX_WINDOWS = 16

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

/** What a look brought of one queue. */
export interface Seen {
  /** The last place taken of each priority that something was taken of. */
  readonly taken: readonly (readonly [priority: number, seq: bigint])[]
  /** If fewer jobs came than were asked for: a place up to which all was looked at. */
  readonly horizon: bigint | undefined
}

/**
 * Remembers, for each class, up to which place in the queue everything was taken, so that a claim need not walk
 * again over dead index entries that an old snapshot keeps alive.
 *
 * Two modes. *Plain*, the normal one: claims look at everything. *Marked*, while claims are measurably slow, or so
 * large that they leave dead entries faster than these are cleaned up: they start at a mark ({@link ClassMarks}).
 *
 * A job may be behind a mark for all that. Where jobs came back to their old places, a notification tells
 * ({@link found}); the sweeper goes where a transaction ended late ({@link takeLate}), and in turns through everything, and tells
 * too. Claims then look in that window until a look finds no more there. The marks never decide what may run, only
 * where to look first.
 */
export class LowWater {
  readonly #marks = new Map<string, ClassMarks>()
  readonly #late = new Map<string, ClassRange>()
  /** Where jobs are behind marks, in the order of their places. */
  #windows: readonly ClassRange[] = []
  /** Those that the look under way was told of. */
  #asked: readonly ClassRange[] = []
  #slowClaims = 0
  #isMarked = false

  get isMarked(): boolean {
    return this.#isMarked
  }

  /**
   * Where the next claim of `queues` is to look: at each as a whole, or, with marks, at one priority after the other,
   * first in its windows.
   */
  ranges(queues: readonly string[]): readonly ClassRange[] {
    this.#asked = []
    if (!this.#isMarked) {
      return queues.map((queue) => ({
        queue,
        priority: 0,
        after: 0n,
        lastPriority: limits.priority.max,
        upto: LAST,
      }))
    }
    this.#asked = this.#windows
    return queues.flatMap((queue) =>
      PRIORITIES.flatMap((priority) => {
        const mark = this.behind(queue, priority)
        const windows = this.#windows.filter((window) => isOf(window, queue, priority))
        const rest = { queue, priority, after: mark, lastPriority: priority, upto: LAST }
        return [...withoutOverlaps(windows, mark), rest]
      }),
    )
  }

  /** Where the sweeper has to look: everything up to the mark. */
  behind(queue: string, priority: number): bigint {
    return this.#marks.get(keyOf(queue, priority))?.usable ?? 0n
  }

  /** Stretches behind the marks where transactions that ended late may have left jobs. Each is given once. */
  takeLate(): readonly ClassRange[] {
    const late = [...this.#late.values()]
    this.#late.clear()
    return late
  }

  /** There is a job in this window of a class: the sweeper saw it, or it came back to there. Plain looks find it anyway. */
  found(range: ClassRange): void {
    if (!this.#isMarked) return
    const ofClass = this.#windows.filter((window) => isOf(window, range.queue, range.priority))
    // A look under way may have passed the place before the job came there.
    const known = ofClass.find(
      (window) => window.after <= range.after && range.after < window.upto && !this.#asked.includes(window),
    )
    if (known !== undefined && range.upto <= known.upto) return
    if (known === undefined && ofClass.length >= MAX_WINDOWS) return
    const whole = known === undefined ? range : { ...range, after: known.after }
    this.#windows = [...this.#windows.filter((window) => window !== known), whole].sort((a, b) =>
      a.after < b.after ? -1 : 1,
    )
  }

  /** What the look at {@link ranges} saw of `queue`, by `snapshot`; its answer came at `nowMs`. */
  saw(queue: string, seen: Seen, snapshot: Snapshot, nowMs: number): void {
    this.#windows = this.#windows.flatMap((window) =>
      window.queue === queue && this.#asked.includes(window) ? leftOf(window, seen) : window,
    )
    this.#asked = this.#asked.filter((window) => window.queue !== queue)
    const { taken, horizon } = seen
    const places = horizon === undefined ? taken : PRIORITIES.map((priority) => [priority, horizon] as const)
    for (const [priority, seq] of places) this.#sawClass(queue, priority, seq, snapshot, nowMs)
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
    this.#windows = []
    this.#late.clear()
  }

  #sawClass(queue: string, priority: number, seq: bigint, snapshot: Snapshot, nowMs: number): void {
    const key = keyOf(queue, priority)
    const marks = this.#marks.get(key) ?? new ClassMarks()
    this.#marks.set(key, marks)
    const late = marks.saw(seq, snapshot, nowMs)
    // Plain looks have seen it.
    if (!this.#isMarked) return
    for (const { after, upto } of late) {
      const known = this.#late.get(key) ?? { after, upto }
      this.#late.set(key, {
        queue,
        priority,
        after: after < known.after ? after : known.after,
        lastPriority: priority,
        upto: upto > known.upto ? upto : known.upto,
      })
    }
  }
}

/**
 * `windows`, which are in the order of their places, up to `end` and each without what the one before has: a claim that comes by a
 * job twice would count it twice.
 */
function withoutOverlaps(windows: readonly ClassRange[], end: bigint): readonly ClassRange[] {
  let from = 0n
  return windows.flatMap((window) => {
    const after = window.after > from ? window.after : from
    const upto = window.upto < end ? window.upto : end
    if (after >= upto) return []
    from = upto
    return [{ ...window, after, upto }]
  })
}

/** What a look leaves to be looked at of a window. Looks go by priority, then by place, windows first. */
function leftOf(window: ClassRange, { taken, horizon }: Seen): readonly ClassRange[] {
  if (horizon !== undefined || taken.some(([priority]) => priority > window.priority)) return []
  const last = taken.find(([priority]) => priority === window.priority)?.[1]
  if (last === undefined || last <= window.after) return [window]
  return last < window.upto ? [{ ...window, after: last }] : []
}

function isOf(range: ClassRange, queue: string, priority: number): boolean {
  return range.queue === queue && range.priority === priority
}

function keyOf(queue: string, priority: number): string {
  return `${priority} ${queue}`
}

/** Claimed jobs per second from which a worker looks by itself rather than being told. */
const BUSY_RATE = 300
/** Claimed jobs per second below which it goes back to being told. */
const CALM_RATE = 100
const RATE_WINDOW_MS = 200
/** Wait between two looks of a busy worker when the first did not find all it asked for. */
const BUSY_LOOK_MS = 1.5
const BUSY_LOOK_MAX_MS = 50
/** Looks after saying that it sleeps: an enqueue may have looked for sleepers before, and committed after. */
const RECHECK_AT_MS = [20, 120, 620] as const
/** Waits between looks of a worker that hears nothing, from the last job that it found. */
const DEAF_LOOK_MS = [20, 100, 500, 2000] as const

/** Most jobs that a look asks for after a sleep, before it is known whether there is more. */
export const FEW = 16

/** Looks by the exchange itself, in units of the maintenance loop's. */
const FALLBACK = 60

interface QueuePace {
  lookAtMs: number
  misses: number
  /** The last look gave all that it asked for: there is more. */
  hasMore: boolean
  /** Something was announced since the last look went out, which may have missed it. */
  isTold: boolean
}

/**
 * Decides when to look for jobs, and whether enqueues have to announce themselves.
 *
 * Two modes. *Waiting*: the worker has said that it sleeps; enqueues notify it, and a look follows at once. Looks
 * of its own come a few times after it has said so, and then rarely, or, while it hears nothing, at growing
 * intervals from the last job. The guarantee, if every notification is lost, is the maintenance loop's look every
 * `maxPollMs`; this one's own interval ends at sixty times that. *Busy*: jobs come so fast that it looks by itself
 * every 1.5 ms or so, and enqueues, which then find no sleeper, pay nothing: a NOTIFY in each commit would make all
 * commits queue for one lock.
 *
 * It becomes busy when it claims more than 300 jobs a second and waits again below 100. Pure: time comes in.
 */
export class Pace {
  readonly #queues = new Map<string, QueuePace>()
  #maxPollMs: number
  #hears = false
  /** What the database was told last, whether this worker waits; undefined if it may not know. */
  #said: boolean | undefined
  #waitingSinceMs = Number.POSITIVE_INFINITY
  #claimed = 0
  #windowStartMs = 0
  #busy = false

  constructor(queues: readonly string[], maxPollMs: number) {
    this.#maxPollMs = maxPollMs
    for (const queue of queues)
      this.#queues.set(queue, { lookAtMs: 0, misses: 0, hasMore: false, isTold: false })
  }

  get busy(): boolean {
    return this.#busy
  }

  /** Whether notifications are heard; a lost listener shortens the guarantee. */
  listens(hears: boolean, maxPollMs: number): void {
    this.#hears = hears
    this.#maxPollMs = maxPollMs
  }

  /** Whether the database has to be told that this worker waits, or that it does no more. */
  get hasToSay(): boolean {
    return this.#said !== !this.#busy
  }

  /** The database was told: look at all now, and, if enqueues announce themselves from now on, again soon. */
  said(waiting: boolean, nowMs: number): void {
    this.#said = waiting
    this.#waitingSinceMs = waiting ? nowMs : Number.POSITIVE_INFINITY
    this.wake()
  }

  /** The database may be another one, or not have heard: say it again. */
  forgetSaid(): void {
    this.#said = undefined
  }

  isDue(queue: string, nowMs: number): boolean {
    return (this.#queues.get(queue)?.lookAtMs ?? Number.POSITIVE_INFINITY) <= nowMs
  }

  nextLookAtMs(queues: readonly string[]): number {
    let next = Number.POSITIVE_INFINITY
    for (const queue of queues) next = Math.min(next, this.#queues.get(queue)?.lookAtMs ?? next)
    return next
  }

  /** True if the next look at `queue` is to ask for a few jobs: a small statement is quicker. */
  asksFew(queue: string): boolean {
    return !this.#busy && this.#queues.get(queue)?.hasMore === false
  }

  /** Something was announced for `queue`, or for all: look now. */
  wake(queue?: string): void {
    for (const [name, pace] of this.#queues) {
      if (queue === undefined || name === queue) {
        pace.lookAtMs = 0
        pace.misses = 0
        pace.isTold = true
      }
    }
  }

  /** A look at `queue` goes out. What is announced from now on may have been committed too late for it. */
  looks(queue: string): void {
    const pace = this.#queues.get(queue)
    if (pace !== undefined) pace.isTold = false
  }

  /** What the last look at `queue` gave. */
  looked(queue: string, found: { readonly wanted: number; readonly got: number }, nowMs: number): void {
    const pace = this.#queues.get(queue)
    if (pace === undefined) return
    this.#claimed += found.got
    pace.misses = found.got > 0 || pace.isTold ? 0 : pace.misses + 1
    pace.hasMore = found.got >= found.wanted
    if (pace.hasMore || pace.isTold) pace.lookAtMs = nowMs
    else if (this.#busy) pace.lookAtMs = nowMs + Math.min(BUSY_LOOK_MAX_MS, BUSY_LOOK_MS * 2 ** pace.misses)
    else pace.lookAtMs = Math.min(nowMs + FALLBACK * this.#maxPollMs, this.#recheckAtMs(pace, nowMs))
  }

  /** To be called before each round: true if the mode has changed. */
  update(nowMs: number): boolean {
    const elapsedMs = nowMs - this.#windowStartMs
    if (elapsedMs < RATE_WINDOW_MS) return false
    const rate = (this.#claimed * 1000) / elapsedMs
    this.#claimed = 0
    this.#windowStartMs = nowMs
    const busy = this.#busy ? rate >= CALM_RATE : rate > BUSY_RATE
    const changed = busy !== this.#busy
    this.#busy = busy
    return changed
  }

  #recheckAtMs({ misses }: QueuePace, nowMs: number): number {
    if (!this.#hears) return nowMs + (DEAF_LOOK_MS[misses] ?? Number.POSITIVE_INFINITY)
    const sinceMs = this.#waitingSinceMs
    const next = RECHECK_AT_MS.find((atMs) => sinceMs + atMs > nowMs)
    return next === undefined ? Number.POSITIVE_INFINITY : sinceMs + next
  }
}

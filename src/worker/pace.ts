/** Claimed jobs per second from which a worker looks by itself rather than being told. */
const BUSY_RATE = 300
/** Claimed jobs per second below which it goes back to being told. */
const CALM_RATE = 100
const RATE_WINDOW_MS = 200
/** Wait between two looks of a busy worker when the first did not find all it asked for. */
const BUSY_LOOK_MS = 1.5
const BUSY_LOOK_MAX_MS = 50
/** Looks after going to sleep: an enqueue may have looked for sleepers before, and committed after. */
const RECHECK_MS = [20, 100, 500, 2000] as const

/** Looks by the exchange itself, in units of the maintenance loop's. */
const FALLBACK = 6

interface QueuePace {
  lookAtMs: number
  misses: number
}

/**
 * Decides when to look for jobs, and whether enqueues have to announce themselves.
 *
 * Two modes. *Waiting*: the worker has said that it sleeps; enqueues notify it, a look follows at once, and
 * looks of its own come at growing intervals. The guarantee, if every notification is lost, is the maintenance
 * loop's look every `maxPollMs`; this one's own interval ends at six times that. *Busy*: jobs come so fast that it looks by itself every 1.5 ms or so, and enqueues, which then find no
 * sleeper, pay nothing: a NOTIFY in each commit would make all commits queue for one lock.
 *
 * It becomes busy when it claims more than 300 jobs a second and waits again below 100. Pure: time comes in.
 */
export class Pace {
  readonly #queues = new Map<string, QueuePace>()
  #maxPollMs: number
  #claimed = 0
  #windowStartMs = 0
  #busy = false

  constructor(queues: readonly string[], maxPollMs: number) {
    this.#maxPollMs = maxPollMs
    for (const queue of queues) this.#queues.set(queue, { lookAtMs: 0, misses: 0 })
  }

  get busy(): boolean {
    return this.#busy
  }

  /** A lost listener shortens the guarantee. */
  set maxPollMs(ms: number) {
    this.#maxPollMs = ms
  }

  isDue(queue: string, nowMs: number): boolean {
    return (this.#queues.get(queue)?.lookAtMs ?? Number.POSITIVE_INFINITY) <= nowMs
  }

  nextLookAtMs(queues: readonly string[]): number {
    let next = Number.POSITIVE_INFINITY
    for (const queue of queues) next = Math.min(next, this.#queues.get(queue)?.lookAtMs ?? next)
    return next
  }

  /** Something was announced for `queue`, or for all: look now. */
  wake(queue?: string): void {
    for (const [name, pace] of this.#queues) {
      if (queue === undefined || name === queue) {
        pace.lookAtMs = 0
        pace.misses = 0
      }
    }
  }

  /** What a look at `queue` gave. */
  looked(queue: string, found: { readonly wanted: number; readonly got: number }, nowMs: number): void {
    const pace = this.#queues.get(queue)
    if (pace === undefined) return
    this.#claimed += found.got
    pace.misses = found.got > 0 ? 0 : pace.misses + 1
    if (found.got >= found.wanted) pace.lookAtMs = nowMs
    else if (this.#busy) pace.lookAtMs = nowMs + Math.min(BUSY_LOOK_MAX_MS, BUSY_LOOK_MS * 2 ** pace.misses)
    else
      pace.lookAtMs =
        nowMs + Math.min(FALLBACK * this.#maxPollMs, RECHECK_MS[pace.misses] ?? FALLBACK * this.#maxPollMs)
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
}

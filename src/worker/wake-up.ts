import { monotonicMs } from '../base/clock.ts'
import type { EventHub } from '../base/events.ts'
import { Wakeup } from '../base/wakeup.ts'
import type { Driver, Listener } from '../driver/driver.ts'
import { readPlaces } from '../jobs/sql/came-back.ts'
import type { LowWater } from './low-water.ts'
import { Pace } from './pace.ts'

export interface WakeUpOptions {
  readonly queues: readonly string[]
  readonly maxPollMs: number
  readonly events: EventHub
  /** The queue that a notification names. */
  readonly queueOf: (signal: string) => string | undefined
  /** Id of the present life. */
  readonly workerId: () => bigint
  readonly lookForCancelled: () => void
  readonly lowWater: LowWater
}

/** Without a listener jobs are found by polling alone: more often, then. */
const POLL_WITHOUT_LISTENER_MS = 1000

/**
 * What wakes the loops of a worker. Notifications are a hint: with every one of them lost, looks at known
 * intervals find the same jobs, cancels and due times later.
 */
export class WakeUp {
  readonly exchange = new Wakeup()
  readonly maintenance = new Wakeup()
  readonly pace: Pace
  readonly #options: WakeUpOptions
  #listener: Listener | undefined
  #downSinceMs: number | undefined

  constructor(options: WakeUpOptions) {
    this.#options = options
    this.pace = new Pace(options.queues, options.maxPollMs)
  }

  /** Longest wait between two looks for what is ready or due. */
  get pollMs(): number {
    const { maxPollMs } = this.#options
    return this.#listener?.up ? maxPollMs : Math.min(POLL_WITHOUT_LISTENER_MS, maxPollMs)
  }

  listen(driver: Driver, channel: string): void {
    this.#listener = driver.listen(channel, {
      onNotify: (payload) => this.#notified(payload),
      onUp: () => this.#changed(true),
      onDown: (error) => this.#changed(false, error),
    })
    this.pace.listens(this.#listener.up, this.pollMs)
  }

  async close(): Promise<void> {
    await this.#listener?.close()
  }

  /** Looks for jobs of `queue`, or of all, now. */
  look(queue?: string): void {
    this.pace.wake(queue)
    this.exchange.wake()
  }

  #notified(payload: string): void {
    const { workerId, lookForCancelled, queueOf, lowWater } = this.#options
    if (payload === 'due') return this.maintenance.wake()
    if (payload === `cancel:${workerId()}`) return lookForCancelled()
    const places = readPlaces(payload)
    const queue = queueOf(places?.signal ?? payload)
    if (queue === undefined) return
    if (places !== undefined) {
      const { priority, first, last } = places
      lowWater.found({ queue, priority, after: first - 1n, lastPriority: priority, upto: last })
    }
    this.look(queue)
  }

  #changed(isUp: boolean, error?: unknown): void {
    const { events } = this.#options
    this.pace.listens(isUp, this.pollMs)
    if (isUp && this.#downSinceMs !== undefined) {
      events.emit('wakeup.restored', { downMs: monotonicMs() - this.#downSinceMs })
      this.#downSinceMs = undefined
      // It may be back at another server, which knows less: after a failover some commits may be gone.
      this.pace.forgetSaid()
    }
    if (!isUp && this.#downSinceMs === undefined) {
      this.#downSinceMs = monotonicMs()
      events.emit('wakeup.degraded', { error })
    }
    // What was announced meanwhile is lost: look.
    this.look()
    this.maintenance.wake()
  }
}

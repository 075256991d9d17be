import { sleep } from '../base/sleep.ts'
import type { Driver } from '../driver/driver.ts'
import { type Database, run, runOne } from '../driver/operation.ts'
import { registerWorker } from '../jobs/sql/register-worker.ts'
import { removeWorker } from '../jobs/sql/remove-worker.ts'
import { renewLeases } from '../jobs/sql/renew-leases.ts'
import { type LoopWatch, runHeartbeat } from './heartbeat.ts'
import type { CancelledJob } from './lease-keeper.ts'

/** What is told of a worker when it registers. */
export interface Registration {
  readonly name: string
  readonly app: string
  readonly version: string
  readonly leaseMs: number
  readonly queues: readonly { readonly name: string; readonly concurrency: number }[]
  readonly jobs: readonly { readonly name: string; readonly contract: string }[]
}

export interface LivesOptions {
  readonly driver: Driver
  readonly database: Database
  readonly registration: Registration
  readonly endProcessWhenStuck: boolean
  readonly loopWatch: LoopWatch
  readonly hardDeadlineMs: () => number
  readonly onCancelled: (jobs: readonly CancelledJob[]) => void
  /** A life is over: what was claimed in it belongs to others. */
  readonly onLost: (workerId: bigint, why: string) => void
  /** A new life has begun. */
  readonly onReborn: () => void
  readonly onError: (during: string, error: unknown, retryInMs: number) => void
  readonly onBlocked: (blockedMs: number) => void
}

const RETRY_MAX_MS = 5000

/**
 * The lives of a worker. In each it is a row in `worker` under a new id, and a heartbeat keeps all its leases.
 *
 * Modes: *unborn* → *living* (by {@link begin}, or after a loss) → *between lives*, `id` 0 (the leases are lost: by
 * the heartbeat's word) → *living* … → *ended*. A crash leaves a row that turns stale, and is rescued. A stop waits
 * for a birth under way: its row and its heartbeat would outlive the worker.
 */
export class Lives {
  readonly #options: LivesOptions
  #id = 0n
  #signals = new Map<string, string>()
  #heartbeat: { readonly stop: AbortController; readonly done: Promise<void> } | undefined
  #rebirth: Promise<void> | undefined
  readonly #ending = new AbortController()

  constructor(options: LivesOptions) {
    this.#options = options
  }

  /** Id of the present life; 0 before the first and between two. */
  get id(): bigint {
    return this.#id
  }

  /** The queue that a notification names, if it is one of this worker's. */
  queueOf(signal: string): string | undefined {
    return this.#signals.get(signal)
  }

  /** Registers, and resolves once the first heartbeat was answered: nothing is claimed before leases are kept. */
  async begin(): Promise<void> {
    const { database, registration } = this.#options
    const { name, app, version, leaseMs, queues, jobs } = registration
    const { id, signals } = await runOne(database, registerWorker, {
      name,
      app,
      version,
      leaseMs,
      queues: JSON.stringify(queues),
      jobs: JSON.stringify(jobs),
      queueNames: queues.map((queue) => queue.name),
    })
    await this.#startHeartbeat(id)
    this.#id = id
    this.#signals = new Map(Object.entries(signals as Record<string, string>))
  }

  /** No new life begins from now on; resolves when one that was just beginning has. */
  async settle(): Promise<void> {
    this.#ending.abort()
    if (this.#id === 0n) this.#heartbeat?.stop.abort()
    await this.#rebirth
  }

  /** Removes the worker's row and ends its heartbeat. */
  async end(): Promise<void> {
    const { database, onError } = this.#options
    await run(database, removeWorker, { workerId: this.#id }).catch((error: unknown) =>
      onError('removing the worker', error, 0),
    )
    this.#heartbeat?.stop.abort()
    await this.#heartbeat?.done
  }

  /** Looks for cancelled jobs now rather than with the next heartbeat. */
  async lookForCancelled(): Promise<void> {
    const { database, onCancelled, onError, registration } = this.#options
    try {
      const [row] = await run(database, renewLeases, { workerId: this.#id })
      onCancelled((row?.cancelled ?? []) as readonly CancelledJob[])
    } catch (error) {
      onError('looking for cancelled jobs', error, registration.leaseMs / 3)
    }
  }

  async #startHeartbeat(workerId: bigint): Promise<void> {
    const { driver, database, registration, onError, ...told } = this.#options
    const stop = new AbortController()
    const beating = withResolvers()
    const done = runHeartbeat(
      {
        driver,
        database,
        workerId,
        leaseMs: registration.leaseMs,
        endProcessWhenStuck: told.endProcessWhenStuck,
        loopWatch: told.loopWatch,
        hardDeadlineMs: told.hardDeadlineMs,
        onCancelled: told.onCancelled,
        onBeating: beating.resolve,
        onLost: (why) => {
          beating.reject(new Error(why))
          this.#lost(workerId, why)
        },
        onError: (error, retryInMs) => onError('heartbeat', error, retryInMs),
        onBlocked: told.onBlocked,
      },
      stop.signal,
    )
    this.#heartbeat = { stop, done }
    void done.then(() => beating.reject(new Error('the heartbeat ended before it began')), beating.reject)
    // The thread may take longer than a lease to start; nothing is held yet, and its own first renewal tells the truth.
    const bridge = setInterval(() => {
      run(database, renewLeases, { workerId }).catch(() => undefined)
    }, registration.leaseMs / 3)
    try {
      await beating.promise
    } finally {
      clearInterval(bridge)
    }
  }

  #lost(workerId: bigint, why: string): void {
    if (workerId !== this.#id) return
    this.#heartbeat?.stop.abort()
    this.#id = 0n
    this.#options.onLost(workerId, why)
    this.#rebirth = this.#beginAnew()
  }

  async #beginAnew(): Promise<void> {
    for (let failures = 1; !this.#ending.signal.aborted; failures += 1) {
      try {
        await this.begin()
        return this.#options.onReborn()
      } catch (error) {
        const delayMs = Math.min(RETRY_MAX_MS, 100 * 2 ** failures)
        this.#options.onError('registering anew', error, delayMs)
        await sleep(delayMs, this.#ending.signal)
      }
    }
  }
}

/** `Promise.withResolvers`, which Node 20 lacks. */
function withResolvers(): {
  readonly promise: Promise<void>
  readonly resolve: () => void
  readonly reject: (error: Error) => void
} {
  let resolve: () => void = () => {}
  let reject: (error: Error) => void = () => {}
  const promise = new Promise<void>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}

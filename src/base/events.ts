/** Facts about the job that an event is about. */
export interface JobFacts {
  readonly jobId: string
  readonly jobName: string
  readonly queue: string
  /** Number of the attempt, counted from 1. */
  readonly attempt: number
  /** Fencing token of the claim this attempt runs under. */
  readonly fencingToken: bigint
}

/** What the library tells, and with which facts. Names are stable: part of the public API. */
export interface EventMap {
  /** Jobs were stored by this process; not told for a transaction of yours, which may still roll back. */
  'jobs.enqueued': { readonly count: number; readonly queue: string }
  /** A worker took jobs; they count as started. */
  'jobs.claimed': { readonly count: number; readonly fencingToken: bigint }
  /** A handler was called. */
  'attempt.started': JobFacts
  /** The completion is recorded. `late`: it came after the handler was told to stop. */
  'job.completed': JobFacts & { readonly durationMs: number; readonly late: boolean }
  /** Something in a result could not be stored as it was; `problem` says what. The job is completed all the same. */
  'result.altered': JobFacts & { readonly problem: string }
  /**
   * A call of an effect may have happened or not; `choice` is what its caller has chosen to do about it. Outside jobs there
   * are no facts of one.
   */
  'effect.uncertain': Partial<JobFacts> & {
    readonly effect: string
    readonly key: string
    readonly choice: 'ask' | 'repeat' | 'confirm'
  }
  /** An attempt failed or timed out, and another will follow in `retryInMs`. */
  'attempt.failed': JobFacts & {
    readonly error: unknown
    readonly timedOut: boolean
    readonly retryInMs: number
  }
  /** The job failed for good and waits for a person's decision. */
  'job.discarded': JobFacts & { readonly reason: string; readonly error: unknown }
  'job.cancelled': JobFacts & { readonly reason: string }
  /** The handler asked to run later; the attempt was given back. */
  'job.snoozed': JobFacts & { readonly inMs: number }
  /** Claimed jobs went back unstarted, or interrupted by a stop; no attempt was used. */
  'jobs.handedBack': { readonly count: number; readonly why: 'busy' | 'stopping' | 'interrupted' }
  /** A job that this worker does not know, or whose input its contract refuses, waits for another worker. */
  'job.parked': JobFacts & { readonly reason: string }
  /** A write of this worker was refused: the job is not its any more. Nothing was changed. */
  'write.refused': JobFacts & { readonly write: string }
  /** This worker was declared dead, or could not renew in time: all it holds belongs to others from now on. */
  'lease.lost': { readonly workerId: bigint; readonly jobs: number; readonly why: string }
  /** Jobs of workers that stopped renewing were taken back. */
  'jobs.rescued': {
    readonly requeued: number
    readonly discarded: number
    readonly workerIds: readonly string[]
  }
  /** A handler did not return within its timeout and grace; its attempt is recorded, the handler is still there. */
  'handler.abandoned': JobFacts
  /** The event loop stood still for so long; heartbeats went on from their own thread. */
  'loop.blocked': { readonly blockedMs: number }
  /** The listening connection is lost: jobs are found by polling until it is back. */
  'wakeup.degraded': { readonly error: unknown }
  'wakeup.restored': { readonly downMs: number }
  /** Something inside failed and will be tried again in `retryInMs`. */
  'worker.error': { readonly during: string; readonly error: unknown; readonly retryInMs: number }
  'worker.started': { readonly workerId: bigint; readonly queues: readonly string[] }
  'worker.stopped': { readonly workerId: bigint }
  /** A listener of yours threw or rejected; jobs are not affected. */
  'listener.failed': { readonly event: string; readonly error: unknown }
}

/** Name of an event. */
export type EventName = keyof EventMap
/** What is called at an event; it may be async, and can neither fail nor delay a job. */
export type EventListener<N extends EventName> = (event: EventMap[N]) => void | Promise<void>

/** Where to listen. */
export interface Events {
  /**
   * Calls `listener` at each event of that name. What it throws is reported as `listener.failed` and has no
   * effect on jobs.
   *
   * @returns A function that ends it.
   */
  on<N extends EventName>(name: N, listener: EventListener<N>): () => void
}

/** Tells events to listeners; a listener can neither fail nor delay the one who tells. */
export class EventHub implements Events {
  readonly #listeners = new Map<EventName, Set<EventListener<never>>>()

  on<N extends EventName>(name: N, listener: EventListener<N>): () => void {
    const set = this.#listeners.get(name) ?? new Set()
    this.#listeners.set(name, set)
    set.add(listener)
    return () => void set.delete(listener)
  }

  /** True if somebody listens: facts of a hot path are only put together then. */
  wants(name: EventName): boolean {
    return (this.#listeners.get(name)?.size ?? 0) > 0
  }

  emit<N extends EventName>(name: N, event: EventMap[N]): void {
    for (const listener of this.#listeners.get(name) ?? []) {
      try {
        const answer = (listener as EventListener<N>)(event)
        if (answer instanceof Promise) answer.catch((error: unknown) => this.#failed(name, error))
      } catch (error) {
        this.#failed(name, error)
      }
    }
  }

  #failed(event: EventName, error: unknown): void {
    // A failing listener of failures would call itself.
    if (event !== 'listener.failed') this.emit('listener.failed', { event, error })
  }
}

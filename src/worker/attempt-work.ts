import { InvalidArgumentError, JobCancelledError, LeaseLostError } from '../base/errors.ts'
import type { EventHub } from '../base/events.ts'
import { run } from '../driver/operation.ts'
import { checkEffect, type EffectName, isOutside } from '../effects/effect-name.ts'
import { checkEffectOptions, type EffectCall, type EffectOptions } from '../effects/effect-options.ts'
import { AttemptEffects, type AttemptIds, type EffectId } from '../effects/effect-store.ts'
import { AttemptEndedError, EffectUncertainError } from '../effects/errors.ts'
import { Ledger } from '../effects/ledger.ts'
import { findCheckpoint } from '../jobs/sql/find-checkpoint.ts'
import { findJob } from '../jobs/sql/find-job.ts'
import type { EnqueueParts, Transaction } from '../jobs/transaction.ts'
import type { ClaimedJob } from './claimed-job.ts'
import { type Committed, FencedWrites, type WriteServices } from './fenced-writes.ts'
import { factsOf } from './traffic.ts'

/** What the work of an attempt needs from the application. */
export interface WorkServices extends WriteServices {
  readonly events: EventHub
  /** Refuses a call from inside a transaction of ours: what it commits would not belong to that. */
  readonly requireOutside: () => void
  /** Where a test may let the process die: called at each step that a handler takes. */
  readonly reached?: (step: string, job: ClaimedJob) => Promise<void> | undefined
}

export interface WorkOptions {
  readonly claimed: ClaimedJob
  readonly services: WorkServices
  /** By the monotonic clock. */
  readonly startedMs: number
  readonly signal: () => AbortSignal
  readonly abortReason: () => Error | undefined
  readonly isLate: () => boolean
  /** Refuses what the job does not declare. */
  readonly requireDeclared: (effect: EffectName) => void
  /** Options of an enqueue, with the job's context. */
  readonly inherit: EnqueueParts['inherit']
  /** True for an error that means, to a resource of the job that provides the effect, that it did not happen. */
  readonly notHappened: (effect: EffectName, error: unknown) => boolean
  /** An effect is in doubt and a person has to decide: the attempt ends by it, whatever the handler does. */
  readonly onUncertain: (error: EffectUncertainError) => void
}

/**
 * What a handler does by its context beside deciding: effects, transactions, the commit that ends the job, checkpoints.
 * Made when first used: most handlers use none of it.
 */
export class AttemptWork {
  readonly #options: WorkOptions
  readonly #ids: AttemptIds
  readonly #writes: FencedWrites
  readonly #ledger: Ledger
  #isOver = false
  /** Set while PostgreSQL decides about the job's own commit; never rejects. */
  finishing: Promise<void> | undefined
  /** Set once the job is completed by its own commit. */
  committed: Committed | undefined

  constructor(options: WorkOptions) {
    const { claimed, services, signal, requireDeclared, inherit } = options
    const { database, events } = services
    this.#options = options
    this.#ids = {
      workerId: claimed.lease.workerId,
      token: claimed.lease.token,
      jobId: claimed.id,
      place: claimed.place,
    }
    const parts = { tenant: claimed.tenant, requireDeclared, inherit }
    this.#writes = new FencedWrites(services, this.#ids, parts)
    this.#ledger = new Ledger({
      store: new AttemptEffects(database, this.#ids),
      signal,
      isLost: () => this.#isOver || options.abortReason() instanceof LeaseLostError,
      onUncertain: ({ name, key }, then) =>
        events.emit('effect.uncertain', { ...factsOf(claimed), effect: name, key, then }),
      onAltered: (effect, problem) =>
        events.emit('result.altered', { ...factsOf(claimed), problem: `${effect.name}: ${problem}` }),
      reached: (step) => this.#reached(step),
    })
  }

  /** The attempt is recorded, or about to be: from now on nothing is taken. */
  end(): void {
    this.#isOver = true
  }

  async readCheckpoint(): Promise<unknown> {
    const [found] = await run(this.#options.services.database, findCheckpoint, { jobId: this.#ids.jobId })
    return found?.value ?? undefined
  }

  async effect(
    given: unknown,
    options: EffectOptions<never>,
    fn: (call: EffectCall) => unknown,
  ): Promise<unknown> {
    this.#requireOpen('ctx.effect')
    this.#options.services.requireOutside()
    const name = checkEffect('name', given)
    if (!isOutside(name)) {
      const problem = 'must be an effect outside the database: "send:…", "call:…" or "store:…"'
      throw new InvalidArgumentError({ field: 'name', problem })
    }
    this.#options.requireDeclared(name)
    const { key, notHappened, ...checked } = checkEffectOptions(options, fn)
    const effect: EffectId = {
      tenant: this.#options.claimed.tenant,
      name,
      key: key ?? (await this.#ownKey()),
    }
    try {
      return await this.#ledger.perform({
        ...checked,
        effect,
        fn,
        notHappened: (error) => notHappened(error) || this.#options.notHappened(name, error),
      })
    } catch (error) {
      if (error instanceof EffectUncertainError) this.#options.onUncertain(error)
      throw error
    }
  }

  async transaction<T>(fn: (tx: Transaction) => T | Promise<T>): Promise<T> {
    this.#requireOpen('ctx.transaction')
    await this.#reached('transaction, before it')
    const result = await this.#writes.transaction(async (tx) => {
      const value = await fn(tx)
      await this.#reached('transaction, before its commit')
      this.#requireOpen('the commit of ctx.transaction')
      return value
    })
    await this.#reached('transaction committed')
    return result
  }

  async commit(fn: (tx: Transaction) => unknown): Promise<unknown> {
    this.#requireOpen('ctx.commit')
    await this.#reached('commit, before it')
    let finished: () => void = () => {}
    try {
      const committed = await this.#writes.commit(
        async (tx) => {
          const value = await fn(tx)
          await this.#reached('commit, before it completes')
          return value
        },
        {
          startedMs: this.#options.startedMs,
          late: this.#options.isLate,
          completing: () => {
            this.#requireOpen('the end of ctx.commit')
            this.finishing = new Promise((resolve) => (finished = resolve))
          },
        },
      )
      this.committed = committed
    } finally {
      this.finishing = undefined
      finished()
    }
    await this.#reached('commit done')
    return this.committed.result
  }

  async fence(tx: unknown): Promise<void> {
    this.#requireOpen('ctx.fence')
    await this.#writes.fence(tx)
  }

  async checkpoint(value: unknown): Promise<void> {
    this.#requireOpen('ctx.checkpoint')
    this.#options.services.requireOutside()
    await this.#reached('checkpoint, before it')
    await this.#writes.checkpoint(value)
    await this.#reached('checkpoint saved')
  }

  async progress(fraction: number, note: string | undefined): Promise<void> {
    this.#requireOpen('ctx.progress')
    this.#options.services.requireOutside()
    await this.#writes.progress(fraction, note)
  }

  /** What a job with a unique key is for the business is said already. */
  async #ownKey(): Promise<string> {
    const [job] = await run(this.#options.services.database, findJob, { jobId: this.#ids.jobId })
    if (job?.uniqueKey == null) {
      const problem = 'must be given: the job has no unique key that could stand for it'
      throw new InvalidArgumentError({ field: 'key', problem })
    }
    return `${job.name}:${job.uniqueKey}`
  }

  #requireOpen(call: string): void {
    const reason = this.#options.abortReason()
    // The job goes on elsewhere, or nowhere: nothing this attempt asks for is accepted.
    if (reason instanceof LeaseLostError || reason instanceof JobCancelledError) throw reason
    if (this.#isOver || this.committed !== undefined)
      throw new AttemptEndedError({ jobId: this.#ids.jobId, call })
  }

  #reached(step: string): Promise<void> | undefined {
    return this.#options.services.reached?.(step, this.#options.claimed)
  }
}

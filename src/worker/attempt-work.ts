import { InvalidArgumentError, JobCancelledError, LeaseLostError } from '../base/errors.ts'
import type { EventHub } from '../base/events.ts'
import { run } from '../driver/operation.ts'
import { checkOutsideEffect, type EffectName } from '../effects/effect-name.ts'
import { checkEffectOptions, type EffectCall, type EffectOptions } from '../effects/effect-options.ts'
import { AttemptEffects, type AttemptIds, type EffectId } from '../effects/effect-store.ts'
import { AttemptEndedError, EffectUncertainError } from '../effects/errors.ts'
import { Ledger } from '../effects/ledger.ts'
import { findCheckpoint } from '../jobs/sql/find-checkpoint.ts'
import { findJob } from '../jobs/sql/find-job.ts'
import type { EnqueueParts, Transaction } from '../jobs/transaction.ts'
import type { ClaimedJob } from './claimed-job.ts'
import { type Committed, FencedWrites, UndecidedCommitError, type WriteServices } from './fenced-writes.ts'
import { factsOf } from './traffic.ts'

/** What the work of an attempt needs from the application. */
export interface WorkServices extends WriteServices {
  readonly events: EventHub
  /**
   * Refuses a call inside a transaction of ours, or on a single connection of the user's: what it writes would stay if
   * that rolled back, and could wait for it for ever.
   *
   * @throws {OutsideTransactionError}
   */
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
  /** True once the handler has decided what becomes of the job. */
  readonly isDecided: () => boolean
  /** Refuses what the job does not declare. */
  readonly requireDeclared: (effect: EffectName) => void
  /** Options of an enqueue, with the job's context. */
  readonly inherit: EnqueueParts['inherit']
  /** Gives the result as the job's schema wants it. */
  readonly checkResult: (value: unknown) => Promise<unknown>
  /** True for an error that means, to a resource of the job that provides the effect, that it did not happen. */
  readonly notHappened: (effect: EffectName, error: unknown) => boolean
  /** An effect is in doubt and a person has to decide: the attempt ends by it, whatever the handler does. */
  readonly onUncertain: (error: EffectUncertainError) => void
}

/**
 * What a handler does by its context beside deciding: effects, transactions, the commit that ends the job, checkpoints.
 * Made when first used: most handlers use none of it.
 *
 * An attempt is not over while something that it began by its context is under way, whether the handler waits for it or
 * not ({@link underWay}); and its end is not recorded while PostgreSQL decides about a transaction of it
 * ({@link deciding}). So a job never has both a completion and a retry, and an effect is not in doubt without need.
 */
export class AttemptWork {
  readonly #options: WorkOptions
  readonly #ids: AttemptIds
  readonly #writes: FencedWrites
  readonly #effects: AttemptEffects
  readonly #ledger: Ledger
  readonly #underWay = new Set<Promise<unknown>>()
  readonly #deciding = new Set<Promise<void>>()
  #isOver = false
  #isCommitting = false
  #stopsAsking = false
  /** Set once the job is completed by its own commit. */
  committed: Committed | undefined
  /** Set once nobody can tell what became of its own commit: nothing may be recorded then, since it may have completed. */
  undecided: unknown

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
    this.#effects = new AttemptEffects(database, this.#ids)
    this.#ledger = new Ledger({
      store: this.#effects,
      signal,
      isLost: () => this.#isOver || options.abortReason() instanceof LeaseLostError,
      onUncertain: ({ name, key }, choice) =>
        events.emit('effect.uncertain', { ...factsOf(claimed), effect: name, key, choice }),
      onAltered: (effect, problem) =>
        events.emit('result.altered', { ...factsOf(claimed), problem: `${effect.name}: ${problem}` }),
      reached: (step) => this.#reached(step),
    })
  }

  /** The attempt is recorded, or about to be: from now on nothing is taken. */
  end(): void {
    this.#isOver = true
  }

  /** Nobody waits any longer for what became of a commit whose answer was lost. */
  stopAsking(): void {
    this.#stopsAsking = true
  }

  /**
   * Counts `doing` as work of the attempt until it settles. A rejection that the handler does not look at ends the attempt,
   * not the process.
   */
  track<T>(doing: Promise<T>): Promise<T> {
    this.#underWay.add(doing)
    const settled = () => void this.#underWay.delete(doing)
    doing.then(settled, settled)
    return doing
  }

  /** Resolves when nothing is under way any more, with the first failure of what is now; `undefined` if nothing is. */
  get underWay(): Promise<{ readonly error: unknown } | undefined> | undefined {
    return this.#underWay.size === 0 ? undefined : this.#rest()
  }

  /** Resolves when PostgreSQL has decided about the transactions of this attempt that are committing; never rejects. */
  get deciding(): Promise<unknown> | undefined {
    return this.#deciding.size === 0 ? undefined : Promise.all(this.#deciding)
  }

  async readCheckpoint(): Promise<unknown> {
    const [found] = await run(this.#options.services.database, findCheckpoint, { jobId: this.#ids.jobId })
    return found?.value == null ? undefined : JSON.parse(found.value)
  }

  async effect(
    given: unknown,
    options: EffectOptions<never>,
    fn: (call: EffectCall) => unknown,
  ): Promise<unknown> {
    this.#requireOpen('ctx.effect')
    this.#options.services.requireOutside()
    const name = checkOutsideEffect('name', given)
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
        notHappened: (error) => notHappened(error) === true || this.#options.notHappened(name, error),
      })
    } catch (error) {
      if (error instanceof EffectUncertainError) this.#options.onUncertain(error)
      throw error
    }
  }

  async transaction<T>(fn: (tx: Transaction) => T | Promise<T>): Promise<T> {
    this.#requireOpen('ctx.transaction')
    await this.#reached('transaction, before it')
    const result = await this.#committing(async (commits) => {
      return await this.#writes.transaction(async (tx) => {
        const value = await fn(tx)
        await this.#reached('transaction, before its commit')
        this.#requireOpen('the commit of ctx.transaction')
        commits()
        return value
      })
    })
    await this.#reached('transaction committed')
    return result
  }

  async commit(fn: (tx: Transaction) => unknown): Promise<unknown> {
    this.#requireCommittable('ctx.commit')
    if (this.#isCommitting)
      throw new AttemptEndedError({ jobId: this.#ids.jobId, call: 'a second ctx.commit beside another' })
    this.#isCommitting = true
    try {
      await this.#reached('commit, before it')
      await this.#committing(async (commits) => {
        this.committed = await this.#writes.commit(async (tx) => await this.#result(fn, tx), {
          startedMs: this.#options.startedMs,
          late: this.#options.isLate,
          completing: () => {
            this.#requireCommittable('the end of ctx.commit')
            commits()
          },
          mayAsk: () => !this.#stopsAsking && !(this.#options.abortReason() instanceof LeaseLostError),
        })
      })
    } catch (error) {
      if (error instanceof UndecidedCommitError) this.undecided = error.cause
      throw error instanceof UndecidedCommitError ? error.cause : error
    } finally {
      this.#isCommitting = false
    }
    await this.#reached('commit done')
    return this.committed?.result
  }

  async fence(tx: unknown): Promise<void> {
    this.#requireOpen('ctx.fence')
    await this.#writes.fence(tx)
  }

  /** Gives the value as the next attempt will find it. */
  async checkpoint(value: unknown): Promise<unknown> {
    this.#requireOpen('ctx.checkpoint')
    this.#options.services.requireOutside()
    await this.#reached('checkpoint, before it')
    const kept = await this.#writes.checkpoint(value)
    await this.#reached('checkpoint saved')
    return kept
  }

  async progress(fraction: number, note: string | undefined): Promise<void> {
    this.#requireOpen('ctx.progress')
    this.#options.services.requireOutside()
    await this.#writes.progress(fraction, note)
  }

  async #rest(): Promise<{ readonly error: unknown } | undefined> {
    let failure: { readonly error: unknown } | undefined
    while (this.#underWay.size > 0) {
      const settled = await Promise.allSettled(this.#underWay)
      const failed = settled.find((one) => one.status === 'rejected')
      if (failed !== undefined) failure ??= { error: failed.reason }
    }
    return failure
  }

  async #result(fn: (tx: Transaction) => unknown, tx: Transaction): Promise<unknown> {
    const value = await this.#options.checkResult(await fn(tx))
    await this.#reached('commit, before it completes')
    return value
  }

  /** Runs a transaction; from its `commits` until its end, PostgreSQL decides about it. */
  async #committing<T>(transact: (commits: () => void) => Promise<T>): Promise<T> {
    let over: () => void = () => {}
    const deciding = new Promise<void>((resolve) => {
      over = resolve
    })
    try {
      return await transact(() => void this.#deciding.add(deciding))
    } catch (error) {
      if (error instanceof EffectUncertainError) await this.#askAbout(error)
      throw error
    } finally {
      this.#deciding.delete(deciding)
      over()
    }
  }

  /** An effect on this database was in doubt from a call outside a transaction, which has rolled back now. */
  async #askAbout(error: EffectUncertainError): Promise<void> {
    const { tenant, effect: name, key } = error
    const found = await this.#effects.find({ tenant, name, key })
    if (found === undefined || !(await this.#effects.ask({ tenant, name, key }, found.call))) return
    const { claimed, services, onUncertain } = this.#options
    services.events.emit('effect.uncertain', { ...factsOf(claimed), effect: name, key, choice: 'ask' })
    onUncertain(error)
  }

  /** What a job with a unique key is for the business is said already. Unambiguous: the first colon ends the name. */
  async #ownKey(): Promise<string> {
    const [job] = await run(this.#options.services.database, findJob, { jobId: this.#ids.jobId })
    if (job?.uniqueKey == null) {
      const problem = 'must be given: the job has no unique key that could stand for it'
      throw new InvalidArgumentError({ field: 'key', problem })
    }
    return `${job.name.replaceAll('%', '%25').replaceAll(':', '%3A')}:${job.uniqueKey}`
  }

  /** @throws {AttemptEndedError} The attempt is over, or its job completed by its own commit. */
  requireUnended(call: string): void {
    if (this.#isOver || this.committed !== undefined || this.undecided !== undefined)
      throw new AttemptEndedError({ jobId: this.#ids.jobId, call })
  }

  #requireOpen(call: string): void {
    const reason = this.#options.abortReason()
    // The job goes on elsewhere, or nowhere: nothing this attempt asks for is accepted.
    if (reason instanceof LeaseLostError || reason instanceof JobCancelledError) throw reason
    this.requireUnended(call)
  }

  /** What the handler has decided stands, whatever it does afterwards. */
  #requireCommittable(call: string): void {
    this.#requireOpen(call)
    if (this.#options.isDecided()) throw new AttemptEndedError({ jobId: this.#ids.jobId, call })
  }

  #reached(step: string): Promise<void> | undefined {
    return this.#options.services.reached?.(step, this.#options.claimed)
  }
}

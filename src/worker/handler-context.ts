import { checkNumber } from '../base/check.ts'
import { InvalidArgumentError, JobTimeoutError, LeaseLostError } from '../base/errors.ts'
import { limits } from '../base/limits.ts'
import { type LogFields, type Logger, withFields } from '../base/logger.ts'
import { requireDeclared } from '../effects/declared.ts'
import { type EffectName, noEffects, type OutsideEffect } from '../effects/effect-name.ts'
import type { EffectCall, EffectOptions } from '../effects/effect-options.ts'
import type { Authorize } from '../jobs/authorize.ts'
import {
  contextData,
  type JobContext,
  type JobCoordination,
  noContext,
  type RunningJob,
} from '../jobs/context.ts'
import type { AnyJob, JobInput } from '../jobs/define-job.ts'
import type { ContextData, EnqueueAnswer, EnqueueOptions } from '../jobs/enqueue-options.ts'
import type { Transaction } from '../jobs/transaction.ts'
import { validateResult } from '../jobs/validate.ts'
import { noValues, type Resources, type ResourceValues } from '../resources/resources.ts'
import { AttemptWork, type WorkServices } from './attempt-work.ts'
import type { ClaimedJob } from './claimed-job.ts'
import type { Decision } from './outcome.ts'

export interface ContextServices extends WorkServices {
  readonly coordination: JobCoordination
  readonly logger: Logger
  readonly enqueue: (job: AnyJob, input: unknown, options?: EnqueueOptions) => Promise<EnqueueAnswer>
  readonly resources: Resources
  /** The application's, for jobs without their own. */
  readonly authorize?: Authorize | undefined
}

/** Carries a handler's decision up through its stack. Swallowing it changes nothing: the decision is kept. */
class DecisionMade extends Error {
  override readonly name = 'DecisionMade'

  constructor(decision: Decision) {
    super(`the attempt ends here by ctx.${decision.kind}(); do not catch this`)
  }
}

/** What a handler is given. Parts that few handlers look at are made when first looked at. */
export class HandlerContext implements JobContext<ResourceValues, EffectName> {
  readonly #claimed: ClaimedJob
  readonly #services: ContextServices
  readonly #definition: AnyJob | undefined
  #job: RunningJob | undefined
  #log: Logger | undefined
  #controller: AbortController | undefined
  #abortReason: Error | undefined
  readonly #startedMs: number
  #work: AttemptWork | undefined
  #checkpoint: unknown
  /** Set once the handler has decided; stands whatever it does afterwards. */
  decision: Decision | undefined
  /** Set before the handler is called, if its job uses any. */
  resources: ResourceValues = noValues

  constructor(
    claimed: ClaimedJob,
    services: ContextServices,
    facts: { readonly job: AnyJob | undefined; readonly startedMs: number },
  ) {
    this.#claimed = claimed
    this.#services = services
    this.#definition = facts.job
    this.#startedMs = facts.startedMs
  }

  get job(): RunningJob {
    const c = this.#claimed
    this.#job ??= Object.freeze({
      id: c.id,
      name: c.name as string,
      queue: c.queue,
      tenant: c.tenant,
      attempt: c.attempt,
      maxAttempts: c.maxAttempts,
      fencingToken: c.lease.token,
      enqueuedAt: new Date(c.enqueuedAtMs),
      scheduledAt: new Date(c.scheduledAtMs),
      checkpoint: this.#checkpoint,
    })
    return this.#job
  }

  get context(): ContextData {
    return contextData(this.#claimed.context)
  }

  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.#abortReason !== undefined) this.#controller.abort(this.#abortReason)
    }
    return this.#controller.signal
  }

  get log(): Logger {
    this.#log ??= withFields(this.#services.logger, this.#logFields())
    return this.#log
  }

  /** Aborts the handler's signal, once. */
  abort(reason: Error): void {
    if (this.#abortReason !== undefined) return
    this.#abortReason = reason
    this.#controller?.abort(reason)
  }

  get abortReason(): Error | undefined {
    return this.#abortReason
  }

  /** What became of the job's own commit, if it has one; made when first used. */
  get work(): AttemptWork | undefined {
    return this.#work
  }

  /** Reads what earlier attempts left, before the handler is called. */
  async readCheckpoint(): Promise<void> {
    this.#checkpoint = await this.#use().readCheckpoint()
    // What looked at the job before the handler, such as the resources' tenant, saw it without.
    this.#job = undefined
  }

  snooze(options: { readonly inMs: number }): never {
    this.#decide({ kind: 'snooze', inMs: checkInMs(options) })
  }

  discard(reason: string): never {
    this.#decide({ kind: 'discard', reason: String(reason) })
  }

  cancel(reason: string): never {
    this.#decide({ kind: 'cancel', reason: String(reason) })
  }

  retry(options: { readonly inMs: number; readonly reason?: string }): never {
    this.#decide({
      kind: 'retry',
      inMs: checkInMs(options),
      reason: options.reason ?? 'the handler asked for a retry',
    })
  }

  get locks(): JobCoordination['locks'] {
    return this.#services.coordination.locks
  }

  get keys(): JobCoordination['keys'] {
    return this.#services.coordination.keys
  }

  get sequences(): JobCoordination['sequences'] {
    return this.#services.coordination.sequences
  }

  async script(...given: Parameters<JobCoordination['script']>): ReturnType<JobCoordination['script']> {
    return await this.#services.coordination.script(...given)
  }

  async enqueue<J extends AnyJob>(
    job: J,
    input: JobInput<J>,
    options?: Omit<EnqueueOptions, 'tx'>,
  ): Promise<EnqueueAnswer> {
    // The job goes on elsewhere, and enqueues there what it has to.
    if (this.#abortReason instanceof LeaseLostError) throw this.#abortReason
    this.#work?.requireUnended('ctx.enqueue')
    this.#requireDeclared(`enqueue:${job?.name}`)
    return await this.#services.enqueue(job, input, this.inheriting(options))
  }

  /** Options of an enqueue with this job's context, unless they have their own. */
  inheriting(options: Omit<EnqueueOptions, 'tx'> | undefined): Omit<EnqueueOptions, 'tx'> | undefined {
    const { context } = this
    return context === noContext || options?.context !== undefined ? options : { ...options, context }
  }

  #logFields(): LogFields {
    const { id, name, attempt, queue } = this.#claimed
    const facts = { jobId: id, jobName: name, attempt, queue }
    return this.context === noContext ? facts : { ...facts, context: this.context }
  }

  effect<T>(
    name: OutsideEffect,
    options: EffectOptions<T>,
    fn: (call: EffectCall) => T | Promise<T>,
  ): Promise<T> {
    return this.#begin(
      async (work) => await work.effect(name, options as EffectOptions<never>, fn),
    ) as Promise<T>
  }

  transaction<T>(fn: (tx: Transaction) => T | Promise<T>): Promise<T> {
    return this.#begin(async (work) => await work.transaction(fn))
  }

  commit<T>(fn: (tx: Transaction) => T | Promise<T>): Promise<T> {
    return this.#begin(async (work) => await work.commit(fn)) as Promise<T>
  }

  fence(tx: unknown): Promise<void> {
    return this.#begin(async (work) => await work.fence(tx))
  }

  checkpoint(value: unknown): Promise<void> {
    return this.#begin(async (work) => {
      this.#checkpoint = await work.checkpoint(value)
      this.#job = undefined
    })
  }

  progress(fraction: number, note?: string): Promise<void> {
    return this.#begin(async (work) => await work.progress(fraction, note))
  }

  /** The attempt waits for it, even if the handler does not. */
  #begin<T>(act: (work: AttemptWork) => Promise<T>): Promise<T> {
    const work = this.#use()
    return work.track(act(work))
  }

  #requireDeclared(effect: EffectName): void {
    const { name, effects } = this.#definition ?? { name: this.#claimed.name ?? '', effects: noEffects }
    requireDeclared({ kind: 'job', name }, effects, effect)
  }

  #use(): AttemptWork {
    this.#work ??= new AttemptWork({
      claimed: this.#claimed,
      services: this.#services,
      startedMs: this.#startedMs,
      signal: () => this.signal,
      abortReason: () => this.#abortReason,
      isLate: () => this.#abortReason instanceof JobTimeoutError,
      isDecided: () => this.decision !== undefined,
      checkResult: async (value) =>
        this.#definition === undefined ? value : await validateResult(this.#definition, value),
      requireDeclared: (effect) => this.#requireDeclared(effect),
      inherit: (options) => this.inheriting(options),
      notHappened: (effect, error) => this.#services.resources.notHappened(this.#definition, effect, error),
      onUncertain: (error) => {
        this.decision ??= { kind: 'discard', reason: 'effect-uncertain', error }
      },
    })
    return this.#work
  }

  #decide(decision: Decision): never {
    this.decision ??= decision
    throw new DecisionMade(decision)
  }
}

function checkInMs(options: { readonly inMs: number } | undefined): number {
  if (options?.inMs === undefined) throw new InvalidArgumentError({ field: 'inMs', problem: 'must be given' })
  return checkNumber('inMs', options.inMs, limits.delayMs)
}

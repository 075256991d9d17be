import type { StandardSchemaV1 } from '@standard-schema/spec'
import { type BackoffPolicy, checkBackoff } from '../base/backoff.ts'
import { checkName, checkNumber } from '../base/check.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import { limits } from '../base/limits.ts'
import { checkEffects, type EffectName } from '../effects/effect-name.ts'
import { checkUses, type ResourcesOf, type Uses } from '../resources/resource.ts'
import { type Authorize, checkAuthorize } from './authorize.ts'
import type { JobContext } from './context.ts'
import { contractOf } from './contract.ts'
import { requireSchema } from './validate.ts'

/** What {@link defineJob} takes. */
export interface JobOptions<
  Name extends string,
  Input extends StandardSchemaV1,
  Result extends StandardSchemaV1,
  Effects extends readonly EffectName[] = readonly EffectName[],
  Used extends Uses = Uses,
> {
  /**
   * Stable name that finds the handler, such as `'sales.sendConfirmation'`: 1 to 255 bytes. Stored with each
   * job, so a rename needs a release that knows both.
   */
  readonly name: Name
  /** Queue that jobs go to unless the enqueue says otherwise. Default: `'default'`. */
  readonly queue?: string | undefined
  /**
   * Schema of the input (zod, valibot, arktype: any Standard Schema). Checked at enqueue and again before the
   * handler; what is stored is the value as given, what the handler gets is the schema's output.
   */
  readonly input: Input
  /** Schema of the handler's result; a result it refuses is a failed attempt. Default: any JSON, or nothing. */
  readonly result?: Result | undefined
  /**
   * What the handler does to the world, such as `['enqueue:sales.notify', 'send:email']`. `ctx` refuses what is not
   * declared here, before it begins; an effect outside the database needs a resource in `uses` that provides it.
   * Default: none, so that `ctx.enqueue` refuses every job.
   */
  readonly effects?: Effects | undefined
  /**
   * Resources for `ctx.resources`, by the names that the handler has for them. Each has to provide an effect that is
   * declared. Built once for each worker. Default: none.
   */
  readonly uses?: Used | undefined
  /**
   * Says that running the handler twice does no harm. Required: delivery is at least once, and a worker that
   * dies after its handler acted runs it again. The word protects nothing by itself.
   */
  readonly idempotent: true
  /** Attempts before the job is discarded: 1 to 1,000. Default: 20. */
  readonly maxAttempts?: number | undefined
  /** 0 to 9, lower starts first. Default: 0. */
  readonly priority?: number | undefined
  /** How long an attempt may run before its signal aborts, in milliseconds: 1 ms to 24 days. Default: no limit. */
  readonly timeoutMs?: number | undefined
  /**
   * How long a handler may go on after its signal aborted, in milliseconds: 0 to 10 minutes. One that has not ended
   * by then is left behind, and its attempt recorded without it. Default: 5,000.
   */
  readonly abortGraceMs?: number | undefined
  /**
   * Wait before the next attempt, as data or as a function of the attempt's number and error that gives
   * milliseconds. Default: exponential from 1 s, full jitter, at most 1 h.
   */
  readonly retry?: BackoffPolicy | undefined
  /**
   * Decides before each attempt's handler whether whoever asked for the job may still act; see {@link Authorize}. In
   * place of the application's. Default: the application's `authorize`, if it has one.
   */
  readonly authorize?: Authorize<StandardSchemaV1.InferOutput<Input>> | undefined
  /**
   * Does the work. What it returns, or its promise resolves to, completes the job; what it throws fails the attempt;
   * a `PermanentError` discards the job. Watch `ctx.signal` in whatever takes long.
   */
  readonly handler: (
    ctx: JobContext<ResourcesOf<Used>, Effects[number]>,
    input: StandardSchemaV1.InferOutput<Input>,
  ) => StandardSchemaV1.InferInput<Result> | Promise<StandardSchemaV1.InferInput<Result>>
}

/** A job as an application knows it. Made by {@link defineJob}; frozen. */
export interface Job<
  Name extends string = string,
  Input extends StandardSchemaV1 = StandardSchemaV1,
  Result extends StandardSchemaV1 = StandardSchemaV1,
> {
  readonly name: Name
  readonly queue: string
  readonly input: Input
  readonly result: Result | undefined
  readonly effects: readonly EffectName[]
  readonly uses: Uses
  readonly idempotent: true
  readonly maxAttempts: number
  readonly priority: number
  readonly timeoutMs: number | undefined
  readonly abortGraceMs: number
  readonly retry: BackoffPolicy | undefined
  readonly authorize: Authorize | undefined
  /** Fingerprint of what producers and workers have to agree on. */
  readonly contract: string
  // A method, so that a job of a certain input is a Job of any.
  handler(ctx: JobContext, input: unknown): unknown
}

// biome-ignore format: one line
/** A job of whatever input and result. */
export type AnyJob = Job<string, StandardSchemaV1, StandardSchemaV1>
/** A job of one of these names. */
export type JobNamed<Name extends string> = Job<Name, StandardSchemaV1, StandardSchemaV1>

/** What a producer gives to enqueue `J`. */
export type JobInput<J extends AnyJob> = StandardSchemaV1.InferInput<J['input']>
/** What a handler of `J` returns. */
export type JobResult<J extends AnyJob> =
  J extends Job<string, StandardSchemaV1, infer R> ? StandardSchemaV1.InferOutput<R> : never

/**
 * Defines a job: its name, the shape of its input, and the function that does the work.
 *
 * @returns The definition, for `defineApp` and for enqueueing. Nothing is stored.
 * @throws {InvalidArgumentError} An option is missing, of the wrong type or out of range; `idempotent` is not
 *   `true`. Names the field.
 *
 * @example
 * const sendConfirmation = defineJob({
 *   name: 'sales.sendConfirmation',
 *   queue: 'mail',
 *   input: z.object({ orderId: z.string() }),
 *   idempotent: true,
 *   handler: async (ctx, { orderId }) => { await mail(orderId, ctx.signal) },
 * })
 */
export function defineJob<
  const Name extends string,
  Input extends StandardSchemaV1,
  Result extends StandardSchemaV1 = StandardSchemaV1<unknown>,
  const Effects extends readonly EffectName[] = readonly [],
  Used extends Uses = Record<never, never>,
>(options: JobOptions<Name, Input, Result, Effects, Used>): Job<Name, Input, Result> {
  const { handler } = options
  const name = checkName('name', options.name) as Name
  requireSchema('input', options.input)
  if (options.result !== undefined) requireSchema('result', options.result)
  if ((options.idempotent as unknown) !== true) {
    throw new InvalidArgumentError({
      field: 'idempotent',
      problem: `must be true for job "${name}": delivery is at least once, so its handler has to bear a second run`,
    })
  }
  if (typeof handler !== 'function') {
    throw new InvalidArgumentError({ field: 'handler', problem: `must be a function for job "${name}"` })
  }
  const queue = checkName('queue', options.queue ?? 'default')
  const effects = checkEffects('effects', options.effects)
  return Object.freeze({
    name,
    queue,
    input: options.input,
    result: options.result,
    effects,
    uses: checkUses(options.uses),
    idempotent: true as const,
    maxAttempts: checkNumber('maxAttempts', options.maxAttempts, limits.maxAttempts),
    priority: checkNumber('priority', options.priority, limits.priority),
    timeoutMs: checkNumber('timeoutMs', options.timeoutMs, limits.timeoutMs),
    abortGraceMs: checkNumber('abortGraceMs', options.abortGraceMs, limits.abortGraceMs),
    retry: options.retry === undefined ? undefined : checkBackoff('retry', options.retry),
    authorize: checkAuthorize(options.authorize) as Authorize | undefined,
    contract: contractOf({ name, queue, input: options.input, result: options.result, effects }),
    handler: handler as (ctx: JobContext, input: unknown) => unknown,
  })
}

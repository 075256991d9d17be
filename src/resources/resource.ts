import { checkName } from '../base/check.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import { checkEffects, type EffectName } from '../effects/effect-name.ts'

/** What a resource can provide: everything but the enqueueing of jobs, which needs none. */
export type ProvidedEffect = Exclude<EffectName, `enqueue:${string}`>

/** What `create` of a resource is told. */
export interface ResourceRequest {
  /** Tenant it is built for; empty without tenants. */
  readonly tenant: string
  /** Aborts when the worker that it is built for stops. */
  readonly signal: AbortSignal
}

/** How a resource is built and freed. */
export interface ResourceFactory<T> {
  /**
   * Builds the value: once for each worker and tenant, when a job first needs it. What it throws fails the attempt
   * that asked, and the next one asks again. It should end soon: jobs that need it wait.
   */
  create(request: ResourceRequest): T | Promise<T>
  /**
   * Frees the value when its worker has stopped; what it throws is told as `worker.error`, and it is waited for
   * 10 s. Default: the value's own `Symbol.asyncDispose` or `Symbol.dispose`, if it has one.
   */
  dispose?(value: T): unknown
  /**
   * Says of an error that the outside action did certainly not happen, so that it may be done again without asking.
   * Default: of no error.
   */
  notHappened?(error: unknown): boolean
}

/** What {@link resource} takes. */
export interface ResourceOptions<T> extends ResourceFactory<T> {
  /** Name by which an application can replace it: 1 to 255 bytes. */
  readonly name: string
  /** The effects that a job can have through it, such as `['send:email']`; at least one. */
  readonly provides: readonly ProvidedEffect[]
}

/** Something that handlers act through: a mailer, a bucket, a client. Made by {@link resource}; frozen. */
export interface Resource<T = unknown> {
  readonly name: string
  readonly provides: readonly EffectName[]
  // Methods, so that a resource of a certain type is a Resource of any.
  create(request: ResourceRequest): T | Promise<T>
  dispose?(value: T): unknown
  notHappened?(error: unknown): boolean
}

/** Resources by the names that a job gives them. */
export type Uses = Readonly<Record<string, Resource>>

/** What `ctx.resources` holds for the resources of a job. */
export type ResourcesOf<U> = {
  readonly [K in keyof U]: U[K] extends { create(request: ResourceRequest): infer T } ? Awaited<T> : never
}

/** Uses of a job without any. */
export const noUses: Uses = Object.freeze({})

/**
 * Defines a resource, for `uses` of a job. Builds nothing yet.
 *
 * @returns The definition, frozen.
 * @throws {InvalidArgumentError} An option is missing or of the wrong type; names the field.
 *
 * @example
 * const mailer = resource({
 *   name: 'mailer',
 *   provides: ['send:email'],
 *   create: () => createTransport(process.env.SMTP_URL),
 *   dispose: (transport) => transport.close(),
 * })
 */
export function resource<T>(options: ResourceOptions<T>): Resource<T> {
  const name = checkName('name', options.name)
  const provides = checkEffects('provides', options.provides)
  if (provides.length === 0) {
    throw new InvalidArgumentError({
      field: 'provides',
      problem: `must name an effect for resource "${name}"`,
    })
  }
  const enqueues = provides.find((effect) => effect.startsWith('enqueue:'))
  if (enqueues !== undefined) {
    const problem = `must not have "${enqueues}": a job is enqueued without a resource`
    throw new InvalidArgumentError({ field: 'provides', problem })
  }
  return Object.freeze({ name, provides, ...checkFactory(`resource "${name}"`, options) })
}

/**
 * Checks how a resource is built and freed.
 *
 * @throws {InvalidArgumentError} `create` is missing, or one of the three is no function.
 */
export function checkFactory<T>(what: string, options: ResourceFactory<T>): ResourceFactory<T> {
  const { dispose, notHappened } = options as unknown as Readonly<Record<string, unknown>>
  if (typeof options.create !== 'function') {
    throw new InvalidArgumentError({ field: 'create', problem: `must be a function for ${what}` })
  }
  for (const [field, value] of Object.entries({ dispose, notHappened })) {
    if (value === undefined || typeof value === 'function') continue
    throw new InvalidArgumentError({ field, problem: `must be a function for ${what}, or left out` })
  }
  return {
    create: (request) => options.create(request),
    ...(dispose === undefined ? {} : { dispose: (value: T) => options.dispose?.(value) }),
    ...(notHappened === undefined
      ? {}
      : { notHappened: (error: unknown) => options.notHappened?.(error) === true }),
  }
}

/**
 * Checks the resources of a job.
 *
 * @returns A frozen copy; {@link noUses} for `undefined` and the empty object.
 * @throws {InvalidArgumentError} No object, or a member that is not made by {@link resource}.
 */
export function checkUses(value: unknown): Uses {
  if (value === undefined) return noUses
  if (typeof value !== 'object' || value === null) {
    throw new InvalidArgumentError({ field: 'uses', problem: 'must be an object of resources' })
  }
  for (const [key, each] of Object.entries(value)) {
    if (isResource(each)) continue
    throw new InvalidArgumentError({ field: `uses.${key}`, problem: 'must be made by resource()' })
  }
  return Object.keys(value).length === 0 ? noUses : Object.freeze({ ...(value as Uses) })
}

/** True for what {@link resource} makes. */
export function isResource(value: unknown): value is Resource {
  const given = value as Partial<Resource> | null | undefined
  return (
    typeof given?.name === 'string' && Array.isArray(given.provides) && typeof given.create === 'function'
  )
}

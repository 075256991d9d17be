import { ResourceError } from '../base/errors.ts'
import type { EffectName } from '../effects/effect-name.ts'
import { noUses, type Resource, type Uses } from './resource.ts'

/** Values by the names that a job gives its resources. */
export type ResourceValues = Readonly<Record<string, unknown>>

/** What has resources. Looked up by identity: the same job of the same application. */
interface User {
  readonly uses: Uses
}

interface Built {
  readonly resource: Resource
  readonly value: unknown
}

export interface ResourcesOptions {
  /** What stands in for a resource, by its name. */
  readonly replacements: ReadonlyMap<string, Resource>
  /** Told of what `dispose` threw, or that it took too long. */
  readonly onError: (during: string, error: unknown) => void
}

/** How long a value may take to be freed, in milliseconds: the stop of a worker must not hang on it. */
const DISPOSE_MS = 10_000

/** `ctx.resources` of a job without any. */
export const noValues: ResourceValues = Object.freeze({})

/**
 * The resources of one worker. Each is built once for each tenant, when first asked for; whoever asks meanwhile waits for
 * the same one. One that could not be built is forgotten: the next attempt tries again.
 *
 * Modes: *open*, *closed* (by {@link close}: nothing more is built, what was built is freed).
 */
export class Resources {
  readonly #options: ResourcesOptions
  /** By name and tenant; the promise while it is being built. */
  readonly #built = new Map<string, Promise<Built>>()
  readonly #values = new WeakMap<User, Map<string, ResourceValues>>()
  readonly #closing = new AbortController()
  #closed: Promise<void> | undefined

  constructor(options: ResourcesOptions) {
    this.#options = options
  }

  /**
   * The values of `user` for a tenant, frozen; a promise only while one of them is not built.
   *
   * @throws {ResourceError} One could not be built; `cause` is what its `create` threw.
   * @throws The reason of `signal`, once it aborts: this caller waits no longer, others may.
   */
  of(user: User, tenant: string, signal: AbortSignal): ResourceValues | Promise<ResourceValues> {
    if (user.uses === noUses) return noValues
    return this.#values.get(user)?.get(tenant) ?? this.#build(user, tenant, signal)
  }

  /** True if a resource of the job that provides the effect says that `error` means that it did not happen. */
  notHappened(user: User | undefined, effect: EffectName, error: unknown): boolean {
    return Object.values(user?.uses ?? {}).some((each) => {
      const resource = this.#options.replacements.get(each.name) ?? each
      return (
        resource.provides.some((provided) => provided === effect) && resource.notHappened?.(error) === true
      )
    })
  }

  /** Frees everything that was built, whatever fails. Resolves within 10 s; safe to repeat. */
  async close(): Promise<void> {
    this.#closed ??= this.#free()
    await this.#closed
  }

  async #build(user: User, tenant: string, signal: AbortSignal): Promise<ResourceValues> {
    const entries = Object.entries(user.uses).map(async ([key, each]) => {
      const resource = this.#options.replacements.get(each.name) ?? each
      return [key, (await this.#one(resource, tenant)).value] as const
    })
    const values = Object.freeze(Object.fromEntries(await unlessAborted(Promise.all(entries), signal)))
    const byTenant = this.#values.get(user) ?? new Map<string, ResourceValues>()
    this.#values.set(user, byTenant.set(tenant, values))
    return values
  }

  async #one(resource: Resource, tenant: string): Promise<Built> {
    const key = JSON.stringify([resource.name, tenant])
    const building = this.#built.get(key) ?? this.#create(resource, tenant)
    this.#built.set(key, building)
    try {
      return await building
    } catch (error) {
      if (this.#built.get(key) === building) this.#built.delete(key)
      throw error
    }
  }

  async #create(resource: Resource, tenant: string): Promise<Built> {
    const { signal } = this.#closing
    try {
      signal.throwIfAborted()
      return { resource, value: await resource.create({ tenant, signal }) }
    } catch (error) {
      throw new ResourceError({ resource: resource.name, tenant }, { cause: error })
    }
  }

  async #free(): Promise<void> {
    this.#closing.abort(new Error('the worker has stopped'))
    const waiting = new Map<Promise<Built>, string>()
    for (const [key, building] of this.#built) waiting.set(building, (JSON.parse(key) as [string])[0])
    this.#built.clear()
    await Promise.all([...waiting].map(async ([building, name]) => await this.#freeOne(building, name)))
  }

  async #freeOne(building: Promise<Built>, name: string): Promise<void> {
    const freeing = building.then(
      async ({ resource, value }) => void (await disposeOf(resource, value)),
      // It was never there; the attempt that asked for it was told.
      () => undefined,
    )
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error(`not done after ${DISPOSE_MS} ms`)), DISPOSE_MS)
    })
    try {
      await Promise.race([freeing, late])
    } catch (error) {
      this.#options.onError(`freeing resource "${name}"`, error)
    } finally {
      clearTimeout(timer)
    }
  }
}

/** By the definition's own `dispose`, or else by the value's. */
function disposeOf(resource: Resource, value: unknown): unknown {
  if (resource.dispose !== undefined) return resource.dispose(value)
  const own = (value ?? {}) as Partial<AsyncDisposable & Disposable>
  if (typeof own[Symbol.asyncDispose] === 'function') return own[Symbol.asyncDispose]?.()
  return own[Symbol.dispose]?.()
}

async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop: () => void = () => {}
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error)
  })
  // Waited for by nobody once `promise` has won.
  promise.catch(() => undefined)
  aborted.catch(() => undefined)
  if (signal.aborted) stop()
  signal.addEventListener('abort', stop)
  try {
    return await Promise.race([promise, aborted])
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

import type { Resource } from '../resources/resource.ts'
import { currentScope, never } from './scope.ts'

/** One call of a method of a fake. `result` and `error` come when it has ended. */
export interface FakeCall {
  /** Name of the method; empty if the resource itself was called. */
  readonly method: string
  readonly args: readonly unknown[]
  readonly result?: unknown
  readonly error?: unknown
}

/** Stands in for a resource and keeps what it was asked. Made by {@link fake}. */
export type Fake<T = unknown> = Resource<T> & {
  /** What handlers get. */
  readonly value: T
  /** All calls so far, in order. */
  readonly calls: readonly FakeCall[]
  /** Forgets the calls. What an implementation keeps by itself is its own. */
  reset(): void
}

/** The methods that a fake may leave to the kit. */
type PartOf<T> = T extends (...args: never[]) => unknown ? T : Partial<T>

/**
 * Makes a stand-in for a resource: each call of a method is recorded, and done by `implementation` if that has the method; else it
 * resolves to `undefined`. The resource's own `create` is never called. An attempt that the kit has killed calls nothing any more, and
 * `everyCrashPoint` can kill one before and after each call.
 *
 * @returns The fake, for `resources` of {@link createTestApp}. One may serve many tests: `reset()` forgets the calls.
 *
 * @example
 * const fakeMailer = fake(mailer, { send: async () => 'receipt' })
 * await using t = await createTestApp(app, { resources: { mailer: fakeMailer } })
 * await t.drain()
 * expect(fakeMailer.calls).toMatchObject([{ method: 'send', args: [{ to: 'ann@example.com' }] }])
 */
export function fake<T>(resource: Resource<T>, implementation?: PartOf<T>): Fake<T> {
  const { name, provides } = resource
  const calls: FakeCall[] = []
  const value = recording(name, implementation ?? {}, calls) as T
  return {
    name,
    provides,
    create: () => value,
    ...(resource.notHappened === undefined
      ? {}
      : { notHappened: (error: unknown) => resource.notHappened?.(error) === true }),
    // Nothing was built, so nothing is freed: the implementation is the test's.
    dispose: () => {},
    value,
    calls,
    reset: () => void calls.splice(0),
  }
}

type Method = (...args: readonly unknown[]) => unknown

function recording(resource: string, implementation: object, calls: FakeCall[]): unknown {
  const methods = new Map<string, Method>()
  const methodOf = (method: string): Method => {
    const known =
      methods.get(method) ?? ((...args) => call(resource, { method, args }, implementation, calls))
    methods.set(method, known)
    return known
  }
  return new Proxy(implementation, {
    apply: (_, __, args: readonly unknown[]) => methodOf('')(...args),
    get(target, property) {
      const own: unknown = Reflect.get(target, property)
      // Awaited or printed, a fake is no promise and no method of a test runner.
      if (typeof property === 'symbol' || property === 'then' || property === 'toJSON') return own
      return own === undefined || typeof own === 'function' ? methodOf(property) : own
    },
  })
}

/** A call in its steps. Without a killer it stays as synchronous as the implementation is. */
function call(
  resource: string,
  { method, args }: Pick<FakeCall, 'method' | 'args'>,
  implementation: object,
  calls: FakeCall[],
): unknown {
  const scope = currentScope()
  if (scope?.life.isDead) return never
  const step = method === '' ? resource : `${resource}.${method}`
  const before = scope?.reached(`${step}, before it`)
  const invoke = (): unknown => {
    const record: { -readonly [K in keyof FakeCall]: FakeCall[K] } = { method, args }
    calls.push(record)
    const own = method === '' ? implementation : (Reflect.get(implementation, method) as unknown)
    let result: unknown
    try {
      result = typeof own === 'function' ? Reflect.apply(own, implementation, args) : Promise.resolve()
    } catch (error) {
      record.error = error
      throw error
    }
    if (!(result instanceof Promise)) {
      record.result = result
      return scope?.reached(`${step}, after it`) ?? result
    }
    return result.then(
      async (value: unknown) => {
        record.result = value
        await scope?.reached(`${step}, after it`)
        return value
      },
      (error: unknown) => {
        record.error = error
        throw error
      },
    )
  }
  return before === undefined ? invoke() : before.then(invoke)
}

/** True for what {@link fake} makes. */
export function isFake(value: unknown): value is Fake {
  return Array.isArray((value as Partial<Fake> | null)?.calls) && typeof (value as Fake).reset === 'function'
}

import type { EventEmitter } from 'node:events'
import { inspect } from 'node:util'

export interface WaitOptions {
  /** How long to wait, in milliseconds. Default: 20,000. */
  readonly deadlineMs?: number
  /** Pause between two looks, in milliseconds. Default: 20. */
  readonly pollMs?: number
}

const DEADLINE_MS = 20_000
const POLL_MS = 20

/**
 * Looks again and again until `look` gives something true, and returns that. A look that throws counts as
 * "not yet", so that `expect` may be used in it.
 *
 * @param what What is awaited, as a sentence: it is the failure's message.
 * @throws The deadline passed; the message says what the last look gave, `cause` what it threw.
 */
export async function eventually<T>(
  what: string,
  look: () => T | Promise<T>,
  options: WaitOptions = {},
): Promise<Truthy<T>> {
  const { deadlineMs = DEADLINE_MS, pollMs = POLL_MS } = options
  const until = performance.now() + deadlineMs
  for (;;) {
    let last: { readonly value?: T; readonly error?: unknown }
    try {
      const value = await look()
      if (isTruthy(value)) return value
      last = { value }
    } catch (error) {
      last = { error }
    }
    if (performance.now() >= until) throw late(what, deadlineMs, last)
    await new Promise((resolve) => setTimeout(resolve, pollMs))
  }
}

type Truthy<T> = Exclude<T, undefined | null | false | 0 | ''>

function isTruthy<T>(value: T): value is Truthy<T> {
  return Boolean(value)
}

function late(what: string, deadlineMs: number, last: { value?: unknown; error?: unknown }): Error {
  const seen =
    'error' in last ? `the last look threw ${String(last.error)}` : `last seen: ${show(last.value)}`
  return new Error(`not within ${deadlineMs} ms: ${what}; ${seen}`, { cause: last.error })
}

function show(value: unknown): string {
  return inspect(value, { depth: 4, breakLength: 100, maxStringLength: 500 })
}

/**
 * The next event `name` of `emitter` that `where` accepts. Call it before the act that causes the event:
 * one that has passed is not seen.
 */
export function nextEvent<Events extends Record<keyof Events, unknown[]>, Name extends keyof Events & string>(
  emitter: EventEmitter<Events>,
  name: Name,
  options: WaitOptions & { readonly where?: (...facts: Events[Name]) => boolean } = {},
): Promise<Events[Name]> {
  const { deadlineMs = DEADLINE_MS, where = () => true } = options
  const { promise, resolve, reject } = withResolvers<Events[Name]>()
  let seen = 0
  // The emitter's own types cannot be followed through a generic map of events.
  const plain: EventEmitter = emitter as unknown as EventEmitter
  const listener = (...facts: unknown[]) => {
    seen += 1
    if (where(...(facts as Events[Name]))) resolve(facts as Events[Name])
  }
  const timer = setTimeout(
    () => reject(new Error(`not within ${deadlineMs} ms: event "${name}"; ${seen} others of that name came`)),
    deadlineMs,
  )
  plain.on(name, listener)
  return promise.finally(() => {
    clearTimeout(timer)
    plain.off(name, listener)
  })
}

export interface Resolvers<T> {
  readonly promise: Promise<T>
  readonly resolve: (value: T) => void
  readonly reject: (error: unknown) => void
}

/** `Promise.withResolvers`, which Node 20 lacks. */
export function withResolvers<T>(): Resolvers<T> {
  let resolve: (value: T) => void = () => {}
  let reject: (error: unknown) => void = () => {}
  const promise = new Promise<T>((yes, no) => {
    resolve = yes
    reject = no
  })
  return { promise, resolve, reject }
}

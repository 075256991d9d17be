import type { JobCoordination } from '../jobs/context.ts'
import type { Scope } from './scope.ts'

/** What gives something to go through rather than an answer to wait for, and what is always part of a transaction. */
const NOT_STEPS = new Set(['keys.watch', 'keys.all', 'locks.assert'])

/**
 * The locks, keys, sequences and scripts of an attempt, each call of which is a step that the kit sees, and where it can let the
 * attempt die: before it, and once it is done. A call in a transaction is a part of that one's step.
 */
export function watchedCoordination(base: JobCoordination, scope: Scope): JobCoordination {
  return {
    locks: watched(base.locks, 'locks', scope),
    keys: watched(base.keys, 'keys', scope),
    sequences: watched(base.sequences, 'sequences', scope),
    script: async (text, params, options) =>
      await step(scope, 'script', options, async () => await base.script(text, params, options)),
  }
}

function watched<T extends object>(target: T, area: string, scope: Scope): T {
  return new Proxy(target, {
    get(_, name) {
      const member: unknown = Reflect.get(target, name, target)
      if (typeof member !== 'function') return member
      const call = (...given: unknown[]): unknown => Reflect.apply(member, target, given)
      const what = `${area}.${String(name)}`
      if (NOT_STEPS.has(what)) return call
      return async (...given: unknown[]) =>
        await step(scope, what, given.at(-1), async () => await call(...given))
    },
  })
}

async function step<T>({ life, reached }: Scope, what: string, options: unknown, act: () => Promise<T>) {
  const { tx } = Object(options) as { readonly tx?: unknown }
  if (tx !== undefined) return await life.live(act)
  await reached(`${what}, before it`)
  const answer = await life.live(act)
  await reached(`${what} done`)
  return answer
}

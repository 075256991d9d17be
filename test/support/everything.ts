import { type EffectName, type JobContext, resource } from '../../src/index.ts'

/** What the jobs of these tests do. */
const outside = ['send:email', 'send:slow', 'send:quick', 'call:bank', 'call:x'] as const
const inside = ['write:x'] as const

/** A handler's context that may do anything. */
export type AnyContext = JobContext<object, EffectName>

/** For a job that may do all that the tests do, by a resource that says it provides it. */
export const everything = {
  effects: [...outside, ...inside],
  uses: { outside: resource({ name: 'outside', provides: [...outside], create: () => null }) },
}

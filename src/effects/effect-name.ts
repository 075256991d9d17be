import { checkName } from '../base/check.ts'
import { InvalidArgumentError } from '../base/errors.ts'

/** An effect outside the database: a rollback does not undo it, and a second run does it again. */
export type OutsideEffect = `send:${string}` | `call:${string}` | `store:${string}`

/** An effect inside the database: it commits and rolls back with the transaction that has it. */
export type InsideEffect = `read:${string}` | `write:${string}` | `enqueue:${string}`

/**
 * What code does to the world, by kind and object: `read:x` and `write:x` are of the database, `enqueue:job` names a
 * job, `send:x`, `call:x` and `store:x` are outside. The object has 1 to 255 bytes, without blanks; after
 * `enqueue:` stands a job's name, whatever it is.
 */
export type EffectName = InsideEffect | OutsideEffect

/** The names after `enqueue:` in a union of effects. */
export type EnqueuedName<Effect> = Effect extends `enqueue:${infer Name}` ? Name : never

const KINDS = ['read', 'write', 'enqueue', 'send', 'call', 'store']
const OUTSIDE = /^(?:send|call|store):/

/** Effects of what declares none. */
export const noEffects: readonly never[] = Object.freeze([])

/** True for `send:`, `call:` and `store:`. */
export function isOutside(effect: EffectName): effect is OutsideEffect {
  return OUTSIDE.test(effect)
}

/** The job that an effect enqueues; `undefined` if it is of another kind. */
export function enqueuedName(effect: EffectName): string | undefined {
  return effect.startsWith('enqueue:') ? effect.slice('enqueue:'.length) : undefined
}

/**
 * Checks a list of effects.
 *
 * @returns A frozen copy in the order given; `noEffects` for `undefined` and the empty list.
 * @throws {InvalidArgumentError} No array, one that names an effect twice, or an item that is none; names the item.
 */
export function checkEffects(field: string, value: unknown): readonly EffectName[] {
  if (value === undefined) return noEffects
  if (!Array.isArray(value)) {
    throw new InvalidArgumentError({ field, problem: "must be an array of effects, such as ['send:email']" })
  }
  const effects = value.map((item: unknown, index) => checkEffect(`${field}[${index}]`, item))
  const twice = effects.find((effect, index) => effects.indexOf(effect) !== index)
  if (twice !== undefined) throw new InvalidArgumentError({ field, problem: `has "${twice}" twice` })
  return effects.length === 0 ? noEffects : Object.freeze(effects)
}

/**
 * Checks one effect.
 *
 * @throws {InvalidArgumentError} It is no text, of no known kind, or its object is empty, too long or has blanks.
 */
export function checkEffect(field: string, value: unknown): EffectName {
  const [, kind = '', object = ''] = (typeof value === 'string' && /^([a-z]+):(.*)$/su.exec(value)) || []
  if (!KINDS.includes(kind)) {
    const problem = `must be an effect: ${KINDS.map((each) => `"${each}:…"`).join(', ')}`
    throw new InvalidArgumentError({ field, problem })
  }
  checkName(field, object)
  if (kind !== 'enqueue' && /\s/u.test(object)) {
    throw new InvalidArgumentError({ field, problem: `must have no blanks after "${kind}:"` })
  }
  return value as EffectName
}

/**
 * Checks the name of an effect outside the database, as the ledger keeps them.
 *
 * @throws {InvalidArgumentError} It is none: no text, of another kind, or its object is empty, too long or has blanks.
 */
export function checkOutsideEffect(field: string, value: unknown): OutsideEffect {
  const effect = checkEffect(field, value)
  if (isOutside(effect)) return effect
  const problem = 'must be an effect outside the database: "send:…", "call:…" or "store:…"'
  throw new InvalidArgumentError({ field, problem })
}

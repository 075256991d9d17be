import { type EffectOwner, UndeclaredEffectError } from '../base/errors.ts'
import type { EffectName } from './effect-name.ts'

/**
 * Requires that `owner` declares `effect`. To be called before the effect begins: nothing has happened then.
 *
 * @throws {UndeclaredEffectError} It does not; names the owner, the effect, the declared list and where to declare it.
 */
export function requireDeclared(
  owner: EffectOwner,
  effects: readonly EffectName[],
  effect: EffectName,
): void {
  if (!effects.includes(effect)) throw new UndeclaredEffectError({ owner, effect, declared: effects })
}

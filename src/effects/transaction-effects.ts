import { randomUUID } from 'node:crypto'
import { checkKey } from '../base/check.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import { toStorableJson } from '../base/json.ts'
import { limits } from '../base/limits.ts'
import { type Database, run, runOne } from '../driver/operation.ts'
import type { EffectId } from './effect-store.ts'
import { EffectUncertainError } from './errors.ts'
import { idempotencyKeyOf } from './idempotency-key.ts'
import { enterEffect, leaveEffect, setEffectResult } from './sql/enter-effect.ts'
import { findEffect } from './sql/find-effect.ts'

/**
 * Runs `fn`, which writes by the open transaction `database`, once for the effect's key over all transactions that commit.
 * The record commits and rolls back with the writes, so it is never in doubt.
 *
 * @returns What `fn` gave, now or in the transaction that did it, as JSON holds it.
 * @throws {EffectUncertainError} The key was called outside a transaction, and what came of that is not known.
 * @throws {NotStorableError} {@link TooLargeError} The result is not what JSON holds, or larger than 256 KiB.
 */
export async function performInTransaction(
  database: Database,
  effect: EffectId,
  fn: () => unknown,
): Promise<unknown> {
  const call = randomUUID()
  const { entered } = await runOne(database, enterEffect, { ...effect, call })
  if (!entered) return await earlier(database, effect)
  try {
    const options = { field: 'result', maxBytes: limits.effectResultBytes.default }
    const result = toStorableJson((await fn()) ?? null, options)
    await runOne(database, setEffectResult, { ...effect, call, result })
    return JSON.parse(result)
  } catch (error) {
    // In a transaction that its statement has aborted this fails too, and all is rolled back.
    await runOne(database, leaveEffect, { ...effect, call }).catch(() => undefined)
    throw error
  }
}

async function earlier(database: Database, effect: EffectId): Promise<unknown> {
  const [found] = await run(database, findEffect, effect)
  if (found?.state === 'happened') return found.result
  const { tenant, name, key } = effect
  throw new EffectUncertainError({
    effect: name,
    key,
    tenant,
    idempotencyKey: idempotencyKeyOf(tenant, name, key),
    intendedAt: found?.intendedAt ?? new Date(),
  })
}

/** @throws {InvalidArgumentError} The key is missing or cannot be right. */
export function requireKey(key: unknown): string {
  const checked = checkKey('key', key)
  if (checked === undefined) throw new InvalidArgumentError({ field: 'key', problem: 'must be given' })
  return checked
}

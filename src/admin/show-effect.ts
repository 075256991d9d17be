import { limits } from '../base/limits.ts'
import { type Database, run } from '../driver/operation.ts'
import { idempotencyKeyOf } from '../effects/idempotency-key.ts'
import { checkEffectId, subjectOf } from './effect-name.ts'
import { type EffectFactsRow, findEffectFacts } from './sql/find-effect-facts.ts'
import { type AuditRow, listAudit } from './sql/list-audit.ts'
import { ago, at } from './time-text.ts'

export interface EffectDetails {
  readonly facts: EffectFactsRow
  /** What the provider was given: ask it by this. */
  readonly idempotencyKey: string
  /** What is known of it, and what is to be done: one sentence. */
  readonly explanation: string
  /** What people decided about it, oldest first. */
  readonly audit: readonly AuditRow[]
}

/**
 * All there is to know of one effect; `undefined` if it was never intended, or its retention is over.
 *
 * @throws {InvalidArgumentError} Name, key or tenant cannot be those of an effect. Nothing was sent.
 */
export async function showEffect(
  database: Database,
  given: { readonly tenant?: string | undefined; readonly name: string; readonly key: string },
): Promise<EffectDetails | undefined> {
  const effect = checkEffectId(given)
  const [facts] = await run(database, findEffectFacts, effect)
  if (facts === undefined) return undefined
  const audit = await run(database, listAudit, { subject: subjectOf(effect), limit: limits.pageRows.max })
  const { tenant, name, key } = effect
  return {
    facts,
    audit,
    idempotencyKey: idempotencyKeyOf(tenant, name, key),
    explanation: explainEffect(facts, new Date()),
  }
}

/** What is known of an effect, and what is to be done about it, in one sentence. */
export function explainEffect(effect: EffectFactsRow, now: Date): string {
  const { state, held, calls, jobId, intendedAt, endedAt } = effect
  const by = jobId === null ? '' : ` by job ${jobId}`
  const since = `${at(intendedAt)} (${ago(intendedAt, now)})`
  switch (state) {
    case 'happened':
      return `happened, by what was recorded at ${at(endedAt)}; it is never called again, whoever asks gets its result`
    case 'open':
      return `did not happen, by what was recorded at ${at(endedAt)}; the next attempt that asks for it calls it`
    case 'uncertain':
      return `call ${calls}, made at ${since}${by}, threw without saying whether it happened; find out at the provider, then "holdfast effects resolve"`
    default:
      return held
        ? `call ${calls} is under way since ${since}${by}; whoever else asks for it waits`
        : `call ${calls} was about to be made at ${since}${by}, and its end was never recorded; find out at the provider, then "holdfast effects resolve"`
  }
}

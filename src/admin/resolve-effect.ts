import { checkName } from '../base/check.ts'
import { HoldfastError, InvalidArgumentError } from '../base/errors.ts'
import { toStorableJson } from '../base/json.ts'
import { limits } from '../base/limits.ts'
import { type Database, run, runOne } from '../driver/operation.ts'
import { retryTransaction } from '../driver/transaction.ts'
import type { EffectId } from '../effects/effect-store.ts'
import { checkEffectId, subjectOf } from './effect-name.ts'
import { requireReason } from './reason.ts'
import { EFFECT_UNCERTAIN, requeueJob } from './retry-job.ts'
import type { AdminServices } from './services.ts'
import { addAudit } from './sql/add-audit.ts'
import { listQuestions } from './sql/list-questions.ts'
import { lockEffect } from './sql/lock-effect.ts'
import { resolveEffect as resolveEffectRow } from './sql/resolve-effect.ts'

export interface ResolveOptions {
  /** What is known now: that it happened, or that it did not and may be called. */
  readonly outcome: 'happened' | 'repeat'
  /** JSON text of what the effect gave, for the jobs that ask: at most 256 KiB. Default: `null`. */
  readonly result?: string | undefined
  /** How it is known: one line of at most 1,024 bytes. */
  readonly reason: string | undefined
  /** Who decides: 1 to 255 bytes. */
  readonly actor: string
  /** False: jobs that were discarded for want of the decision stay so. Default: true. */
  readonly retry?: boolean | undefined
}

export interface ResolvedJob {
  readonly id: string
  readonly retried: boolean
  /** What became of it, or why it was left. */
  readonly message: string
}

export type ResolveAnswer =
  /** `resolved` now; `unchanged`: it had been decided so before. */
  | {
      readonly status: 'resolved' | 'unchanged'
      readonly state: string
      readonly jobs: readonly ResolvedJob[]
    }
  /** A call of it is under way. Nothing was changed, as with the next two. */
  | { readonly status: 'held' }
  | { readonly status: 'not-in-doubt'; readonly state: string }
  | { readonly status: 'not-found' }

/** Jobs made available again by one decision; the next call, or `jobs retry`, does the rest. */
const JOBS_AT_ONCE = 1000

/**
 * Decides about an effect in doubt, in one transaction: what is known of it, who said so and why, and that the jobs which
 * were discarded for want of it are available again. Repeating it changes nothing more.
 *
 * @throws {InvalidArgumentError} Something cannot be right. Nothing was sent, as with the next two.
 * @throws {NotStorableError} {@link TooLargeError} The result cannot be kept.
 */
export async function resolveEffect(
  services: AdminServices,
  given: { readonly tenant?: string | undefined; readonly name: string; readonly key: string },
  options: ResolveOptions,
): Promise<ResolveAnswer> {
  const { outcome, result, retry = true } = options
  if (result !== undefined && outcome !== 'happened') {
    const problem = 'is only for what happened; what is called again gives its own'
    throw new InvalidArgumentError({ field: 'result', problem })
  }
  const effect = checkEffectId(given)
  const decision = {
    effect,
    happened: outcome === 'happened',
    result: result === undefined ? null : checkResult(result),
    reason: requireReason(options.reason),
    actor: checkName('by', options.actor),
    retry,
  }
  const { driver, database } = services
  return await retryTransaction(
    async () =>
      await driver.transaction(async (tx) => await decide({ ...database, queryable: tx }, decision)),
  )
}

interface Decision {
  readonly effect: EffectId
  readonly happened: boolean
  readonly result: string | null
  readonly reason: string
  readonly actor: string
  readonly retry: boolean
}

async function decide(inside: Database, decision: Decision): Promise<ResolveAnswer> {
  const { effect, happened, result, reason: note, actor } = decision
  const [locked] = await run(inside, lockEffect, effect)
  if (locked === undefined) return { status: 'not-found' }
  const wanted = happened ? 'happened' : 'open'
  if (locked.state === wanted)
    return { status: 'unchanged', state: wanted, jobs: await retryJobs(inside, decision) }
  const [resolved] = await run(inside, resolveEffectRow, { ...effect, happened, result })
  if (resolved === undefined) {
    const isInDoubt = locked.state === 'intended' || locked.state === 'uncertain'
    return isInDoubt ? { status: 'held' } : { status: 'not-in-doubt', state: locked.state }
  }
  const action = happened ? 'effect-happened' : 'effect-repeat'
  await runOne(inside, addAudit, { actor, action, subject: subjectOf(effect), note })
  return { status: 'resolved', state: resolved.state, jobs: await retryJobs(inside, decision) }
}

/** Each by the path of `retryJob`. One that cannot be retried does not keep the others, nor the decision. */
async function retryJobs(inside: Database, { effect, retry }: Decision): Promise<readonly ResolvedJob[]> {
  const questions = await run(inside, listQuestions, { ...effect, limit: JOBS_AT_ONCE })
  const jobs: ResolvedJob[] = []
  for (const { jobId: id } of questions) jobs.push({ id, ...(await retryOne(inside, id, retry)) })
  return jobs
}

async function retryOne(inside: Database, id: string, retry: boolean): Promise<Omit<ResolvedJob, 'id'>> {
  if (!retry) return { retried: false, message: `left discarded; "holdfast jobs retry ${id}" runs it again` }
  try {
    const requeued = await requeueJob(inside, id, EFFECT_UNCERTAIN)
    if (requeued === undefined) return { retried: false, message: 'does not wait for this decision' }
    const { queue, attempts, maxAttempts } = requeued
    const next = `attempt ${attempts + 1} of ${maxAttempts} is next`
    return { retried: true, message: `available in queue "${queue}"; ${next}` }
  } catch (error) {
    if (!(error instanceof HoldfastError) || !LEAVES_JOB.includes(error.code)) throw error
    return { retried: false, message: `left: ${error.message}` }
  }
}

const LEAVES_JOB: readonly string[] = ['UNIQUE_CONFLICT', 'JOB_NOT_FOUND']

/** JSON text as it was given, digit for digit. */
function checkResult(text: string): string {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (cause) {
    throw new InvalidArgumentError(
      { field: 'result', problem: 'must be JSON, such as {"id":"x"}' },
      { cause },
    )
  }
  toStorableJson(value, { field: 'result', maxBytes: limits.effectResultBytes.default })
  return text
}

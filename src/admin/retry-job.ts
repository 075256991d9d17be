import { JobNotFoundError, UniqueConflictError } from '../base/errors.ts'
import { type Database, run } from '../driver/operation.ts'
import { retryTransaction } from '../driver/transaction.ts'
import { EffectUndecidedError } from '../effects/errors.ts'
import { checkJobId } from './job-id.ts'
import type { AdminServices } from './services.ts'
import { findJob } from './show-job.ts'
import { findKeyHolder } from './sql/find-key-holder.ts'
import { findOpenQuestion } from './sql/find-open-question.ts'
import { lockEndedJob } from './sql/lock-ended-job.ts'
import { requeueEndedJob } from './sql/requeue-ended-job.ts'
import { takeUniqueKey } from './sql/take-unique-key.ts'

export type RetryAnswer =
  | {
      readonly status: 'ready'
      readonly attempts: number
      readonly maxAttempts: number
      readonly queue: string
    }
  /** It is in no state that can be retried; nothing was changed. */
  | { readonly status: 'not-retryable'; readonly state: string | null }

/** Looks for the holder of a key that is given back and taken again meanwhile. */
const LOOKS = 8

/**
 * Makes a discarded or cancelled job available again, with at least one more attempt. Its errors stay, and it
 * takes its unique key again, all in one transaction. Repeating it finds the job available.
 *
 * @throws {JobNotFoundError} There is no such job.
 * @throws {UniqueConflictError} A live job holds its unique key. Nothing was changed, as with the next.
 * @throws {EffectUndecidedError} It was discarded for want of a decision on an effect, and there is none yet.
 */
export async function retryJob(services: AdminServices, jobId: string): Promise<RetryAnswer> {
  checkJobId(jobId)
  const { driver, database } = services
  const requeued = await retryTransaction(
    async () =>
      await driver.transaction(async (tx) => await requeueJob({ ...database, queryable: tx }, jobId)),
  )
  if (requeued !== undefined) return { status: 'ready', ...requeued }
  const { state } = await findJob(database, jobId)
  return { status: 'not-retryable', state }
}

/** Why a job waits for a decision on an effect. */
export const EFFECT_UNCERTAIN = 'effect-uncertain'

/**
 * {@link retryJob} inside a transaction; with `onlyFor`, only a job that was discarded for that reason. `undefined`: the
 * job is in no state that can be retried. What it throws leaves the transaction usable.
 */
export async function requeueJob(inside: Database, jobId: string, onlyFor?: string) {
  const [ended] = await run(inside, lockEndedJob, { jobId })
  if (ended === undefined || ended.state === 'completed') return undefined
  if (onlyFor !== undefined && (ended.state !== 'discarded' || ended.reason !== onlyFor)) return undefined
  if (ended.reason === EFFECT_UNCERTAIN) await requireDecided(inside, jobId)
  const { tenant, name, uniqueKey } = ended
  if (uniqueKey !== null) await takeKey(inside, { jobId, tenant, name, key: uniqueKey })
  const [requeued] = await run(inside, requeueEndedJob, { jobId })
  if (requeued === undefined) throw new JobNotFoundError({ jobId: BigInt(jobId) })
  return requeued
}

async function requireDecided(inside: Database, jobId: string): Promise<void> {
  const [question] = await run(inside, findOpenQuestion, { jobId })
  if (question === undefined) return
  const { tenant, name, key } = question
  throw new EffectUndecidedError({ jobId, tenant, effect: name, key })
}

async function takeKey(
  inside: Database,
  wanted: { readonly jobId: string; readonly tenant: string; readonly name: string; readonly key: string },
): Promise<void> {
  const { jobId, ...key } = wanted
  let holder = BigInt(jobId)
  for (let look = 1; look <= LOOKS; look += 1) {
    const [taken] = await run(inside, takeUniqueKey, wanted)
    if (taken !== undefined) return
    const [held] = await run(inside, findKeyHolder, key)
    // Given back since: it can be taken now.
    if (held === undefined) continue
    holder = held.jobId
    break
  }
  throw new UniqueConflictError({ jobName: key.name, uniqueKey: key.key, conflictingJobId: holder })
}

import { sleep } from '../base/sleep.ts'
import { run } from '../driver/operation.ts'
import { retryTransaction } from '../driver/transaction.ts'
import { isTerminal, type JobState } from '../jobs/state.ts'
import { checkJobId } from './job-id.ts'
import { requireReason } from './reason.ts'
import type { AdminServices } from './services.ts'
import { findJob } from './show-job.ts'
import { discardWaitingJob } from './sql/discard-job.ts'

export type DiscardAnswer =
  | { readonly status: 'discarded' }
  /** It executes or has ended: nothing was changed. */
  | { readonly status: 'not-waiting'; readonly state: string | null }

/** Looks for a job that moves between tables while it is looked for. */
const LOOKS = 8

/**
 * Discards a waiting job. Decided once, in the database: an executing or ended job is left as it is.
 *
 * @throws {InvalidArgumentError} The reason is missing or cannot be right. Nothing was sent.
 * @throws {JobNotFoundError} There is no such job.
 */
export async function discardJob(
  services: AdminServices,
  jobId: string,
  reason: string | undefined,
): Promise<DiscardAnswer> {
  const params = { jobId: checkJobId(jobId), reason: requireReason(reason) }
  const { database } = services
  for (let look = 1; ; look += 1) {
    const [discarded] = await retryTransaction(async () => await run(database, discardWaitingJob, params))
    if (discarded !== undefined) return { status: 'discarded' }
    const { state } = await findJob(database, jobId)
    if (state === 'executing' || state === null || isTerminal(state as JobState) || look === LOOKS)
      return { status: 'not-waiting', state }
    await sleep(5 * 2 ** look)
  }
}

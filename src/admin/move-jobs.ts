import { checkName } from '../base/check.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import { run, runOne } from '../driver/operation.ts'
import { retryTransaction } from '../driver/transaction.ts'
import { checkJobId } from './job-id.ts'
import type { AdminServices } from './services.ts'
import { findJob } from './show-job.ts'
import { moveJob } from './sql/move-job.ts'
import { moveQueueJobs } from './sql/move-queue-jobs.ts'

export type MoveAnswer =
  | { readonly status: 'moved' }
  /** It executes or has ended: nothing was changed. */
  | { readonly status: 'not-waiting'; readonly state: string | null }

const BATCH = 5000

/**
 * Moves a waiting job to another queue; it keeps its priority and its place by age.
 *
 * @throws {InvalidArgumentError} The queue's name cannot be right. Nothing was sent.
 * @throws {JobNotFoundError} There is no such job.
 */
export async function moveToQueue(
  services: AdminServices,
  jobId: string,
  queue: string | undefined,
): Promise<MoveAnswer> {
  const params = { jobId: checkJobId(jobId), queue: checkName('queue', queue) }
  const { database } = services
  const [moved] = await retryTransaction(async () => await run(database, moveJob, params))
  if (moved !== undefined) return { status: 'moved' }
  const { state } = await findJob(database, jobId)
  return { status: 'not-waiting', state }
}

/**
 * Moves all waiting jobs of a queue, such as one that a release has removed, in batches. Safe to repeat: a crash
 * leaves the rest where it was.
 *
 * @returns How many were moved.
 * @throws {InvalidArgumentError} A name cannot be right, or both are the same. Nothing was sent.
 */
export async function moveAllToQueue(
  services: AdminServices,
  fromQueue: string | undefined,
  queue: string | undefined,
): Promise<number> {
  const params = { fromQueue: checkName('from-queue', fromQueue), queue: checkName('queue', queue) }
  if (params.fromQueue === params.queue)
    throw new InvalidArgumentError({ field: 'queue', problem: 'is the queue the jobs are in already' })
  let total = 0
  for (;;) {
    const { moved } = await retryTransaction(
      async () => await runOne(services.database, moveQueueJobs, { ...params, limit: BATCH }),
    )
    total += moved
    if (moved === 0) return total
  }
}

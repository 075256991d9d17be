import { JobNotFoundError } from '../base/errors.ts'
import { type CancelAnswer, cancel } from '../jobs/cancel.ts'
import { checkJobId } from './job-id.ts'
import { checkReason } from './reason.ts'
import type { AdminServices } from './services.ts'

/**
 * Cancels a job: a waiting one never starts, an executing one is told and ends cancelled. See `jobs/cancel.ts`.
 *
 * @throws {JobNotFoundError} There is no such job.
 */
export async function cancelJob(
  services: AdminServices,
  jobId: string,
  reason: string | undefined,
): Promise<Exclude<CancelAnswer, { status: 'not-found' }>> {
  const answer = await cancel(checkJobId(jobId), checkReason(reason), services)
  if (answer.status === 'not-found') throw new JobNotFoundError({ jobId: BigInt(jobId) })
  return answer
}

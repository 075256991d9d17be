import { AuthorizationRefusedError } from '../base/errors.ts'
import type { Authorization } from '../jobs/authorize.ts'
import type { AnyJob } from '../jobs/define-job.ts'
import { noUses } from '../resources/resource.ts'
import type { ContextServices, HandlerContext } from './handler-context.ts'

/** True if something has to be waited for before the handler. Mostly it has not: that path makes no promise. */
export function needsPreparation(job: AnyJob, services: ContextServices): boolean {
  return job.uses !== noUses || job.authorize !== undefined || services.authorize !== undefined
}

/**
 * What comes before the handler: whoever asked for the job is authorized, and the job's resources are there.
 *
 * @throws Whatever keeps the handler from being called: it is an end of the attempt like any that a handler makes.
 */
export async function prepare(
  job: AnyJob,
  input: unknown,
  context: HandlerContext,
  services: ContextServices,
): Promise<void> {
  const authorize = job.authorize ?? services.authorize
  if (authorize !== undefined) obey(await authorize(context, input), job, context)
  context.resources = await services.resources.of(job, context.job.tenant, context.signal)
  if (context.abortReason !== undefined) throw context.abortReason
}

function obey(answer: Authorization, job: AnyJob, context: HandlerContext): void {
  if (answer === undefined || answer === true) return
  const { refuse, discard } = (answer || {}) as { readonly refuse?: unknown; readonly discard?: unknown }
  if (typeof discard === 'string') context.discard(`not authorized: ${discard}`)
  throw new AuthorizationRefusedError({ jobName: job.name, reason: reasonOf(answer, refuse) })
}

/** What is not understood refuses: an answer that is mistyped must not let anybody through. */
function reasonOf(answer: unknown, refuse: unknown): string {
  if (typeof refuse === 'string') return refuse
  return answer === false ? 'authorize said no' : 'authorize gave an answer that is none of those it can give'
}

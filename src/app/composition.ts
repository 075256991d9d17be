import { checkName, checkNumber, checkSchemaName } from '../base/check.ts'
import { CompositionError, HoldfastError } from '../base/errors.ts'
import { type Limit, limits } from '../base/limits.ts'
import { type Authorize, checkAuthorize } from '../jobs/authorize.ts'
import type { AnyJob } from '../jobs/define-job.ts'
import type { Producer } from '../producers/define-producer.ts'
import type { Resource } from '../resources/resource.ts'
import type { Retention } from '../worker/maintenance/pruner.ts'
import type { AppOptions, QueueOptions } from './app-options.ts'
import { checkDeclared, composeProducers, composeResources } from './compose-effects.ts'

/** An application whose parts fit together. */
export interface Composition {
  readonly name: string
  readonly schema: string
  readonly jobs: ReadonlyMap<string, AnyJob>
  readonly queues: ReadonlyMap<string, { readonly concurrency: number }>
  readonly producers: ReadonlyMap<string, Producer>
  /** What jobs use, by name, as it is built here. */
  readonly resources: ReadonlyMap<string, Resource>
  readonly authorize: Authorize | undefined
  readonly leaseMs: number
  readonly maxPollMs: number
  readonly shutdownMs: number
  readonly shutdownGraceMs: number
  readonly retention: Retention
}

/**
 * Checks that the parts of an application fit together.
 *
 * @throws {CompositionError} They do not; lists all faults at once.
 */
export function compose(options: AppOptions): Composition {
  const faults: string[] = []
  const checked = <T>(check: () => T, otherwise: T): T => {
    try {
      return check()
    } catch (error) {
      if (!(error instanceof HoldfastError)) throw error
      faults.push(error.message)
      return otherwise
    }
  }
  const number = (field: 'leaseMs' | 'maxPollMs' | 'shutdownMs' | 'shutdownGraceMs') =>
    checked(() => checkNumber(field, options[field], limits[field]), limits[field].default)
  const days = (field: keyof Retention, limit: Limit & { readonly default: number }) =>
    checked(() => checkNumber(`retention.${field}`, options.retention?.[field], limit), limit.default)

  const queues = composeQueues(options.queues, checked)
  const jobs = composeJobs(options.jobs, queues, faults)
  const producers = composeProducers(options.producers, faults)
  const resources = composeResources(jobs, options.resources, faults)
  checkDeclared(jobs, producers, resources, faults)
  const composition: Composition = {
    name: checked(() => checkName('name', options.name), ''),
    schema: checked(() => checkSchemaName('schema', options.schema ?? 'holdfast'), 'holdfast'),
    jobs,
    queues,
    producers,
    resources,
    authorize: checked(() => checkAuthorize(options.authorize), undefined),
    leaseMs: number('leaseMs'),
    maxPollMs: number('maxPollMs'),
    shutdownMs: number('shutdownMs'),
    shutdownGraceMs: number('shutdownGraceMs'),
    retention: {
      completedDays: days('completedDays', limits.completedRetentionDays),
      cancelledDays: days('cancelledDays', limits.cancelledRetentionDays),
      effectDays: days('effectDays', limits.effectRetentionDays),
      keyDays: days('keyDays', limits.keyRetentionDays),
      keyChanges: days('keyChanges', limits.keyRetentionChanges),
    },
  }
  if (faults.length > 0) throw new CompositionError({ faults })
  return composition
}

type Checked = <T>(check: () => T, otherwise: T) => T

function composeQueues(
  given: Readonly<Record<string, QueueOptions>> | undefined,
  checked: Checked,
): ReadonlyMap<string, { readonly concurrency: number }> {
  const queues = new Map<string, { readonly concurrency: number }>()
  for (const [name, settings] of Object.entries(given ?? { default: {} })) {
    checked(() => checkName('queues', name), name)
    const concurrency = checked(
      () => checkNumber(`queues.${name}.concurrency`, settings?.concurrency, limits.concurrency),
      limits.concurrency.default,
    )
    queues.set(name, { concurrency })
  }
  return queues
}

function composeJobs(
  given: readonly AnyJob[],
  queues: ReadonlyMap<string, unknown>,
  faults: string[],
): ReadonlyMap<string, AnyJob> {
  const jobs = new Map<string, AnyJob>()
  if (!Array.isArray(given)) {
    faults.push('jobs must be an array of what defineJob gives')
    return jobs
  }
  for (const [index, job] of given.entries()) {
    if (typeof job?.handler !== 'function' || typeof job.name !== 'string') {
      faults.push(`jobs[${index}] is not a job; make it with defineJob`)
      continue
    }
    if ((job.idempotent as unknown) !== true) faults.push(`job "${job.name}" does not say "idempotent: true"`)
    if (jobs.has(job.name)) faults.push(`two jobs are named "${job.name}"`)
    if (!queues.has(job.queue)) {
      faults.push(`job "${job.name}" goes to queue "${job.queue}", which is not configured under "queues"`)
    }
    jobs.set(job.name, job)
  }
  return jobs
}

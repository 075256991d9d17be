import { InvalidArgumentError } from '../base/errors.ts'
import { type EffectName, enqueuedName, isOutside } from '../effects/effect-name.ts'
import type { AnyJob } from '../jobs/define-job.ts'
import type { Producer } from '../producers/define-producer.ts'
import { checkFactory, isResource, type Resource } from '../resources/resource.ts'
import type { ResourceReplacement } from './app-options.ts'

type Jobs = ReadonlyMap<string, AnyJob>
type Resources = ReadonlyMap<string, Resource>

/** Producers by name; what is wrong with them goes to `faults`. */
export function composeProducers(
  given: readonly Producer[] | undefined,
  faults: string[],
): ReadonlyMap<string, Producer> {
  const producers = new Map<string, Producer>()
  if (given !== undefined && !Array.isArray(given)) {
    faults.push('producers must be an array of what defineProducer gives')
    return producers
  }
  for (const [index, producer] of (given ?? []).entries()) {
    if (typeof producer?.run !== 'function' || typeof producer.name !== 'string') {
      faults.push(`producers[${index}] is not a producer; make it with defineProducer`)
      continue
    }
    if (producers.has(producer.name)) faults.push(`two producers are named "${producer.name}"`)
    producers.set(producer.name, producer)
  }
  return producers
}

/** The resources that jobs use, by name, each as it is to be built here: replaced, where the application says so. */
export function composeResources(
  jobs: Jobs,
  replacements: Readonly<Record<string, ResourceReplacement>> | undefined,
  faults: string[],
): Resources {
  const resources = new Map<string, Resource>()
  for (const job of jobs.values()) {
    for (const resource of Object.values(job.uses)) {
      const known = resources.get(resource.name)
      if (known !== undefined && known !== resource) faults.push(`two resources are named "${resource.name}"`)
      resources.set(resource.name, resource)
    }
  }
  for (const [name, replacement] of Object.entries(replacements ?? {})) {
    const replaced = resources.get(name)
    if (replaced === undefined) {
      const known = [...resources.keys()].map((each) => `"${each}"`).join(', ') || 'none'
      faults.push(`resources names "${name}", which no job uses; used are: ${known}`)
      continue
    }
    try {
      resources.set(name, replace(replaced, replacement))
    } catch (error) {
      if (!(error instanceof InvalidArgumentError)) throw error
      faults.push(`resources.${name}: ${error.message}`)
    }
  }
  return resources
}

/** Provides what its replacement does: a resource by itself says so, and a mere factory stands in for all of it. */
function replace(replaced: Resource, replacement: ResourceReplacement): Resource {
  const { name } = replaced
  if (isResource(replacement)) return Object.freeze({ ...replacement, name })
  const factory = checkFactory(
    `resource "${name}"`,
    (replacement as ResourceReplacement | null) ?? ({} as ResourceReplacement),
  )
  return Object.freeze({ name, provides: replaced.provides, ...factory })
}

/** What is declared has to be there: jobs for `enqueue:`, resources for effects outside, effects for resources. */
export function checkDeclared(
  jobs: Jobs,
  producers: ReadonlyMap<string, Producer>,
  resources: Resources,
  faults: string[],
): void {
  for (const job of jobs.values()) {
    checkEnqueues(`job "${job.name}"`, job.effects, jobs, faults)
    checkUsed(job, resources, faults)
  }
  for (const { name, effects } of producers.values())
    checkEnqueues(`producer "${name}"`, effects, jobs, faults)
}

function checkEnqueues(owner: string, effects: readonly EffectName[], jobs: Jobs, faults: string[]): void {
  for (const effect of effects) {
    const name = enqueuedName(effect)
    if (name === undefined || jobs.has(name)) continue
    faults.push(`${owner} declares "${effect}", and there is no job "${name}" among "jobs"`)
  }
}

function checkUsed(job: AnyJob, resources: Resources, faults: string[]): void {
  const used = Object.values(job.uses).map((each) => resources.get(each.name) ?? each)
  for (const { name, provides } of used) {
    if (provides.some((effect) => job.effects.includes(effect))) continue
    faults.push(
      `job "${job.name}" uses resource "${name}" and declares none of the effects that it provides (${provides.join(', ')})`,
    )
  }
  for (const effect of job.effects.filter(isOutside)) {
    if (used.some(({ provides }) => provides.includes(effect))) continue
    faults.push(
      `job "${job.name}" declares "${effect}", which no resource in its "uses" provides; add one that does`,
    )
  }
}

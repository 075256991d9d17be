import type { EffectName } from '../effects/effect-name.ts'
import type { AnyJob } from '../jobs/define-job.ts'

/** What an application declares, as plain data in a fixed order: two releases can be compared line by line. */
export interface Manifest {
  readonly app: string
  readonly schema: string
  readonly queues: readonly { readonly name: string; readonly concurrency: number }[]
  readonly producers: readonly { readonly name: string; readonly effects: readonly EffectName[] }[]
  readonly jobs: readonly {
    readonly name: string
    readonly queue: string
    readonly priority: number
    readonly maxAttempts: number
    readonly timeoutMs: number | null
    readonly effects: readonly EffectName[]
    /** Names of the resources it uses. */
    readonly uses: readonly string[]
    /** Fingerprint of what producers and workers have to agree on. */
    readonly contract: string
  }[]
  readonly resources: readonly { readonly name: string; readonly provides: readonly EffectName[] }[]
  /** Each effect, with everything that declares it: who enqueues what, and who touches what. */
  readonly effects: readonly ManifestEffect[]
}

/** One effect, and who declares it. */
export interface ManifestEffect {
  readonly effect: EffectName
  readonly producers: readonly string[]
  readonly jobs: readonly string[]
}

/** The manifest of an application. Needs no database. */
export function manifestOf(app: {
  readonly name: string
  readonly schema: string
  readonly queues: ReadonlyMap<string, { readonly concurrency: number }>
  readonly producers: ReadonlyMap<string, { readonly name: string; readonly effects: readonly EffectName[] }>
  readonly jobs: ReadonlyMap<string, AnyJob>
  readonly resources: ReadonlyMap<string, { readonly name: string; readonly provides: readonly EffectName[] }>
}): Manifest {
  const producers = [...app.producers.values()].map(({ name, effects }) => ({
    name,
    effects: effects.toSorted(compare),
  }))
  const jobs = [...app.jobs.values()].map((job) => ({
    name: job.name,
    queue: job.queue,
    priority: job.priority,
    maxAttempts: job.maxAttempts,
    timeoutMs: job.timeoutMs ?? null,
    effects: job.effects.toSorted(compare),
    uses: [...new Set(Object.values(job.uses).map(({ name }) => name))].sort(compare),
    contract: job.contract,
  }))
  return {
    app: app.name,
    schema: app.schema,
    queues: [...app.queues].map(([name, { concurrency }]) => ({ name, concurrency })).sort(byName),
    producers: producers.sort(byName),
    jobs: jobs.sort(byName),
    resources: [...app.resources.values()]
      .map(({ name, provides }) => ({ name, provides: provides.toSorted(compare) }))
      .sort(byName),
    effects: effectsOf(producers, jobs),
  }
}

type Declares = readonly { readonly name: string; readonly effects: readonly EffectName[] }[]

function effectsOf(producers: Declares, jobs: Declares): readonly ManifestEffect[] {
  const all = new Set([...producers, ...jobs].flatMap(({ effects }) => effects))
  const whoHas = (declares: Declares, effect: EffectName) =>
    declares.filter(({ effects }) => effects.includes(effect)).map(({ name }) => name)
  return [...all].sort(compare).map((effect) => ({
    effect,
    producers: whoHas(producers, effect),
    jobs: whoHas(jobs, effect),
  }))
}

function byName(a: { readonly name: string }, b: { readonly name: string }): number {
  return compare(a.name, b.name)
}

/** By code unit: the same on every machine, whatever its locale. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

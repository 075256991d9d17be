import type { AnyJob } from '../jobs/define-job.ts'

/** What an application declares, as plain data in a fixed order: two releases can be compared line by line. */
export interface Manifest {
  readonly app: string
  readonly schema: string
  readonly queues: readonly { readonly name: string; readonly concurrency: number }[]
  readonly jobs: readonly {
    readonly name: string
    readonly queue: string
    readonly priority: number
    readonly maxAttempts: number
    readonly timeoutMs: number | null
    /** Fingerprint of what producers and workers have to agree on. */
    readonly contract: string
  }[]
}

/** The manifest of an application. Needs no database. */
export function manifestOf(app: {
  readonly name: string
  readonly schema: string
  readonly queues: ReadonlyMap<string, { readonly concurrency: number }>
  readonly jobs: ReadonlyMap<string, AnyJob>
}): Manifest {
  return {
    app: app.name,
    schema: app.schema,
    queues: [...app.queues]
      .map(([name, { concurrency }]) => ({ name, concurrency }))
      .sort((a, b) => compare(a.name, b.name)),
    jobs: [...app.jobs.values()]
      .map(({ name, queue, priority, maxAttempts, timeoutMs, contract }) => ({
        name,
        queue,
        priority,
        maxAttempts,
        timeoutMs: timeoutMs ?? null,
        contract,
      }))
      .sort((a, b) => compare(a.name, b.name)),
  }
}

/** By code unit: the same on every machine, whatever its locale. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}

import { AssertionError } from 'node:assert'
import { inspect } from 'node:util'
import { type Database, run } from '../driver/operation.ts'
import type { AnyJob, JobInput } from '../jobs/define-job.ts'
import { matches } from './matches.ts'
import { listEnqueued, type StoredJob } from './sql/list-enqueued.ts'

type DeepPartial<T> = T extends object ? { readonly [K in keyof T]?: DeepPartial<T[K]> } : T

/** Which jobs are meant. */
export interface EnqueuedOptions<Input = unknown> {
  /**
   * What the input has to have, and may have more than: matchers of a test framework are asked. Default: any input.
   */
  readonly input?: DeepPartial<Input> | undefined
  /** How many there have to be; 0: none. Default: at least one. */
  readonly times?: number | undefined
  /** The queue they went to. Default: any. */
  readonly queue?: string | undefined
  /** Their unique key. Default: any, or none. */
  readonly uniqueKey?: string | undefined
}

/** A job that was enqueued, and what has become of it. */
export interface EnqueuedJob<Input = unknown> {
  readonly id: string
  readonly name: string
  readonly queue: string
  readonly state: string
  readonly priority: number
  readonly uniqueKey: string | undefined
  /** When it is due, by the test's clock; `undefined` if that was at once. */
  readonly runAt: Date | undefined
  readonly input: Input
}

/** Every job that was enqueued and is still stored, by id. */
export async function readEnqueued(database: Database): Promise<readonly EnqueuedJob[]> {
  return (await run(database, listEnqueued, {})).map(enqueuedOf)
}

function enqueuedOf(job: StoredJob): EnqueuedJob {
  const { id, name, queue, state, priority, uniqueKey, runAt, input } = job
  return {
    id,
    name,
    queue,
    state,
    priority,
    uniqueKey: uniqueKey ?? undefined,
    runAt: runAt ?? undefined,
    input,
  }
}

/**
 * @returns The jobs meant.
 * @throws {AssertionError} There are none, or not as many as they should be; lists what was enqueued.
 */
export async function expectEnqueued<J extends AnyJob>(
  database: Database,
  job: J,
  options: EnqueuedOptions<JobInput<J>>,
): Promise<readonly EnqueuedJob<JobInput<J>>[]> {
  const { input, times, queue, uniqueKey } = options
  const all = await readEnqueued(database)
  const found = all.filter(
    (each) =>
      each.name === job.name &&
      (queue === undefined || each.queue === queue) &&
      (uniqueKey === undefined || each.uniqueKey === uniqueKey) &&
      (input === undefined || matches(each.input, input)),
  )
  if (times === undefined ? found.length > 0 : found.length === times)
    return found as readonly EnqueuedJob<JobInput<J>>[]
  throw new AssertionError({
    message: `expected ${wanted(job, options)}, found ${found.length}\n${listed(all)}`,
    actual: all.filter((each) => each.name === job.name).map((each) => each.input),
    expected: input,
    operator: 'expectEnqueued',
  })
}

function wanted(job: AnyJob, { input, times, queue, uniqueKey }: EnqueuedOptions): string {
  const how = [
    input === undefined ? '' : ` with input ${inspect(input, { depth: 8, breakLength: Infinity })}`,
    queue === undefined ? '' : ` in queue "${queue}"`,
    uniqueKey === undefined ? '' : ` with unique key "${uniqueKey}"`,
  ].join('')
  const count = times === undefined ? 'at least one job' : times === 1 ? '1 job' : `${times} jobs`
  return `${count} "${job.name}" enqueued${how}`
}

const MAX_LISTED = 30

/** The jobs as lines, for people. */
export function listed(jobs: readonly EnqueuedJob[]): string {
  if (jobs.length === 0) return 'nothing was enqueued'
  const lines = jobs.slice(0, MAX_LISTED).map(({ id, name, state, queue, uniqueKey, input }) => {
    const key = uniqueKey === undefined ? '' : `, unique key "${uniqueKey}"`
    return `  ${id}  ${name} ${JSON.stringify(input)}  (${state}, queue "${queue}"${key})`
  })
  const more = jobs.length > MAX_LISTED ? [`  … and ${jobs.length - MAX_LISTED} more`] : []
  return ['enqueued were:', ...lines, ...more].join('\n')
}

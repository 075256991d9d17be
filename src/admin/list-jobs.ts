import { checkName, checkNumber, checkOneOf } from '../base/check.ts'
import { limits } from '../base/limits.ts'
import { type Database, run } from '../driver/operation.ts'
import { jobStates } from '../jobs/state.ts'
import { checkJobId } from './job-id.ts'
import { type ListedJob, listJobRows } from './sql/list-jobs.ts'

export interface ListJobsOptions {
  readonly state?: string | undefined
  readonly queue?: string | undefined
  readonly name?: string | undefined
  /** Rows of a page: 1 to 1,000. Default: 50. */
  readonly limit?: number | undefined
  /** The cursor that the page before gave. */
  readonly after?: string | undefined
}

export interface JobPage {
  readonly jobs: readonly ListedJob[]
  /** Give it as `after` for the next page; null: this is the last. */
  readonly next: string | null
}

const ABOVE_ALL_IDS = 2n ** 63n - 1n

/**
 * A page of jobs, newest first. A cursor is the last id of a page, so pages neither repeat nor skip a job that is
 * there throughout, whatever is enqueued or ends in between.
 *
 * @throws {InvalidArgumentError} A filter cannot be right. Nothing was sent.
 */
export async function listJobs(database: Database, options: ListJobsOptions = {}): Promise<JobPage> {
  const limit = checkNumber('limit', options.limit, limits.pageRows)
  const rows = await run(database, listJobRows, {
    state: options.state === undefined ? null : checkOneOf('state', options.state, jobStates),
    queue: options.queue === undefined ? null : checkName('queue', options.queue),
    name: options.name === undefined ? null : checkName('name', options.name),
    below: options.after === undefined ? ABOVE_ALL_IDS : checkJobId(options.after),
    // One more than is shown tells whether there is a next page.
    limit: limit + 1,
  })
  const jobs = rows.slice(0, limit)
  return { jobs, next: rows.length > limit ? (jobs.at(-1)?.id ?? null) : null }
}

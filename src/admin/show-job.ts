import { JobNotFoundError } from '../base/errors.ts'
import { limits } from '../base/limits.ts'
import { sleep } from '../base/sleep.ts'
import { type Database, run, runOne } from '../driver/operation.ts'
import { type CheckpointRow, findCheckpoint } from '../jobs/sql/find-checkpoint.ts'
import { explainJob } from './explain-job.ts'
import { checkJobId } from './job-id.ts'
import { type EffectPage, listEffects } from './list-effects.ts'
import { findJobFacts, type JobFactsRow } from './sql/find-job-facts.ts'
import { findSurroundings } from './sql/find-surroundings.ts'
import { type AttemptRow, listAttempts } from './sql/list-attempts.ts'

export interface JobDetails {
  readonly facts: JobFactsRow
  /** Why it is not running, or what became of it: one sentence. */
  readonly explanation: string
  /** Attempts that did not simply succeed, oldest first. */
  readonly attempts: readonly AttemptRow[]
  /** What it did, or may have done, on the outside, as far as the newest call is its own or it asks. */
  readonly effects: EffectPage['effects']
  /** What its attempts left for the next one, and how far it has come; undefined if nothing. */
  readonly left: CheckpointRow | undefined
}

/** Looks for a job that moves between tables while it is looked for. */
const LOOKS = 5

/**
 * All there is to know of one job.
 *
 * @throws {InvalidArgumentError} `jobId` is no id. Nothing was sent.
 * @throws {JobNotFoundError} There is no such job.
 */
export async function showJob(database: Database, jobId: string): Promise<JobDetails> {
  const facts = await findJob(database, jobId)
  const { queue, name, priority, seq } = facts
  const surroundings = await runOne(database, findSurroundings, { queue, jobName: name, priority, seq })
  // A history may be longer than what is kept now, if the limit was higher once.
  const attempts = await run(database, listAttempts, { jobId, limit: limits.errorHistory.max })
  const { effects } = await listEffects(database, { jobId, limit: limits.pageRows.max })
  const [left] = await run(database, findCheckpoint, { jobId })
  return { facts, explanation: explainJob(facts, surroundings), attempts, effects, left }
}

/**
 * A job with the place it is in.
 *
 * @throws {InvalidArgumentError} `jobId` is no id. Nothing was sent.
 * @throws {JobNotFoundError} There is no such job.
 */
export async function findJob(database: Database, jobId: string): Promise<JobFactsRow> {
  checkJobId(jobId)
  for (let look = 1; ; look += 1) {
    const [facts] = await run(database, findJobFacts, { jobId })
    if (facts === undefined) throw new JobNotFoundError({ jobId: BigInt(jobId) })
    if (facts.state !== null || look === LOOKS) return facts
    await sleep(5 * 2 ** look)
  }
}

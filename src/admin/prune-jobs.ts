import { checkNumber, checkOneOf } from '../base/check.ts'
import { limits } from '../base/limits.ts'
import { type Database, runOne } from '../driver/operation.ts'
import { terminalStates } from '../jobs/state.ts'
import { pruneJobRows } from './sql/prune-jobs.ts'

export interface PruneJobsOptions {
  /** Default: completed and cancelled. Discarded ones wait for a decision and have to be asked for. */
  readonly state?: string | undefined
  /** Only jobs that ended so many days ago. Default: 1 for completed, 7 for cancelled, 30 for discarded ones. */
  readonly olderThanDays?: number | undefined
}

export interface Pruned {
  readonly state: (typeof terminalStates)[number]
  readonly olderThanDays: number
  readonly pruned: number
}

const DAY_MS = 86_400_000
const BATCH = 1000

const retention = {
  completed: limits.completedRetentionDays,
  cancelled: limits.cancelledRetentionDays,
  discarded: limits.discardedRetentionDays,
} as const

/**
 * Deletes ended jobs, with their history, in batches of 1,000, each a transaction of its own. Safe to repeat and to
 * run beside anything.
 *
 * @throws {InvalidArgumentError} An option is out of range. Nothing was sent.
 */
export async function pruneJobs(
  database: Database,
  options: PruneJobsOptions = {},
): Promise<readonly Pruned[]> {
  const states =
    options.state === undefined
      ? (['completed', 'cancelled'] as const)
      : [checkOneOf('state', options.state, terminalStates)]
  const wanted = states.map((state) => ({
    state,
    olderThanDays: checkNumber('older-than-days', options.olderThanDays, retention[state]),
  }))
  const answers: Pruned[] = []
  for (const { state, olderThanDays } of wanted) {
    const pruned = await pruneState(database, state, olderThanDays * DAY_MS)
    answers.push({ state, olderThanDays, pruned })
  }
  return answers
}

async function pruneState(database: Database, state: string, olderThanMs: number): Promise<number> {
  let total = 0
  let after = 0n
  for (;;) {
    const { pruned, last } = await runOne(database, pruneJobRows, { state, olderThanMs, after, limit: BATCH })
    if (last === null) return total
    total += pruned
    after = last
  }
}

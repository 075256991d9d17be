import { type Database, runOne } from '../../driver/operation.ts'
import { pruneEffects } from '../../effects/sql/prune-effects.ts'
import { pruneArchive } from '../../jobs/sql/prune-archive.ts'
import { retireRange } from '../../jobs/sql/retire-range.ts'
import { rotateIds } from '../../jobs/sql/rotate-ids.ts'
import { pruneLocks } from '../../locks/sql/prune-locks.ts'

export interface Retention {
  /** Days that completed jobs are kept. */
  readonly completedDays: number
  /** Days that cancelled jobs are kept. */
  readonly cancelledDays: number
  /** Days that an effect is known which happened, or did not. */
  readonly effectDays: number
}

const PRUNE_AT_ONCE = 1000
/** A resource that nobody has held for so long is forgotten. */
const LOCK_KEPT_MS = 86_400_000
/** Rounds of one call: the next one, a minute later, goes on. */
const MAX_ROUNDS = 20

/**
 * Forgets what is past its retention: closes the range of ids in use when it is old, drops the partitions of old
 * ranges, deletes single rows from the archive of what outlived its range, effects, and
 * resources that nobody locks. Bounded; any worker may do it at any
 * time, the database lets one at a time.
 */
export async function prune(database: Database, retention: Retention): Promise<void> {
  const { effectDays, ...ofJobs } = retention
  await runOne(database, rotateIds, {})
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const { answer } = await runOne(database, retireRange, ofJobs)
    if (answer !== 'retired') break
  }
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const { pruned } = await runOne(database, pruneArchive, { ...ofJobs, maxRows: PRUNE_AT_ONCE })
    if (pruned < PRUNE_AT_ONCE) break
  }
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const { pruned } = await runOne(database, pruneEffects, { days: effectDays, maxRows: PRUNE_AT_ONCE })
    if (pruned < PRUNE_AT_ONCE) break
  }
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    const { looked } = await runOne(database, pruneLocks, { keptMs: LOCK_KEPT_MS, maxRows: PRUNE_AT_ONCE })
    if (looked < PRUNE_AT_ONCE) break
  }
}

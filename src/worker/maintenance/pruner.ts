import { type Database, runOne } from '../../driver/operation.ts'
import { pruneEffects } from '../../effects/sql/prune-effects.ts'
import { pruneArchive } from '../../jobs/sql/prune-archive.ts'
import { retireRange } from '../../jobs/sql/retire-range.ts'
import { rotateIds } from '../../jobs/sql/rotate-ids.ts'
import { type KeyRetention, trimKeyHistory } from '../../keys/prune-keys.ts'
import { pruneLocks } from '../../locks/sql/prune-locks.ts'
import { pruneSequenceRequests } from '../../sequences/sql/prune-sequence-requests.ts'

export interface Retention extends KeyRetention {
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
 * ranges, deletes single rows from the archive of what outlived its range, effects, the history of keys, requests to
 * sequences, and resources that nobody locks. Bounded; any worker may do it at any time, the database lets one at a time.
 */
export async function prune(database: Database, retention: Retention): Promise<void> {
  const { effectDays, keyDays, keyChanges, ...ofJobs } = retention
  const maxRows = PRUNE_AT_ONCE
  await runOne(database, rotateIds, {})
  await whileMore(async () => (await runOne(database, retireRange, ofJobs)).answer === 'retired')
  await whileFull(async () => (await runOne(database, pruneArchive, { ...ofJobs, maxRows })).pruned)
  await whileFull(async () => (await runOne(database, pruneEffects, { days: effectDays, maxRows })).pruned)
  await whileFull(async () => (await runOne(database, pruneSequenceRequests, { maxRows })).pruned)
  await whileFull(async () => (await runOne(database, pruneLocks, { keptMs: LOCK_KEPT_MS, maxRows })).looked)
  await trimKeyHistory(database, { keyDays, keyChanges })
}

/** Again while as many rows as may be were found. */
async function whileFull(round: () => Promise<number>): Promise<void> {
  await whileMore(async () => (await round()) >= PRUNE_AT_ONCE)
}

async function whileMore(round: () => Promise<boolean>): Promise<void> {
  for (let rounds = 0; rounds < MAX_ROUNDS; rounds += 1) {
    if (!(await round())) return
  }
}

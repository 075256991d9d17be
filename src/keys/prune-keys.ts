import { type Database, runOne } from '../driver/operation.ts'
import { sweepKeys, trimKeys } from './sql/prune-keys.ts'

export interface KeyRetention {
  /** Days that a value is kept in the history after the next one; 0: for ever. */
  readonly keyDays: number
  /** Changes of a key kept behind the newest; 0: any number. */
  readonly keyChanges: number
}

const SWEEP_AT_ONCE = 1000
const TRIM_AT_ONCE = 5000
/** Rounds of one call: the next one goes on. */
const MAX_SWEEPS = 20
const MAX_TRIMS = 100
/** Ephemeral keys are for what is newest. */
const EPHEMERAL_CHANGES = 16

/** Marks expired keys, and so tells their watchers. Nothing depends on it: an expired key is absent at once. Bounded. */
export async function sweepExpiredKeys(database: Database): Promise<void> {
  for (const ephemeral of [false, true]) {
    for (let round = 0; round < MAX_SWEEPS; round += 1) {
      const { swept } = await runOne(database, sweepKeys, { ephemeral, maxRows: SWEEP_AT_ONCE })
      if (swept < SWEEP_AT_ONCE) break
    }
  }
}

/**
 * Forgets changes of keys that are past their retention, but nothing that a live hold reads, and nothing younger than an
 * hour. Bounded; any worker may do it at any time, the database lets one at a time.
 */
export async function trimKeyHistory(database: Database, retention: KeyRetention): Promise<void> {
  const { keyDays: keptDays, keyChanges } = retention
  for (const ephemeral of [false, true]) {
    const keptChanges = ephemeral ? EPHEMERAL_CHANGES : keyChanges
    for (let round = 0; round < MAX_TRIMS; round += 1) {
      const params = { ephemeral, keptDays, keptChanges, maxRows: TRIM_AT_ONCE }
      const { looked } = await runOne(database, trimKeys, params)
      if (looked < TRIM_AT_ONCE) break
    }
  }
}

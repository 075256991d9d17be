import { type Database, run, runOne } from '../driver/operation.ts'
import { readMigrations, readVersion } from '../migrations/migrate.ts'
import { listQueues } from './queues.ts'
import { findStatus } from './sql/find-status.ts'
import { listParkedReasons, type ParkedReason } from './sql/list-parked-reasons.ts'
import type { QueueRow } from './sql/list-queues.ts'
import { listWorkers, type WorkerRow } from './sql/list-workers.ts'

export interface SchemaStatus {
  readonly name: string
  /** Null: the schema or its tables are missing. */
  readonly version: number | null
  readonly expected: number
  readonly state: 'current' | 'missing' | 'older' | 'newer' | 'newer-and-breaking'
}

export interface Status {
  readonly schema: SchemaStatus
  readonly now: Date
  readonly workers: readonly WorkerRow[]
  readonly queues: readonly QueueRow[]
  readonly scheduled: bigint
  readonly nextDueAt: Date | null
  /** Discarded jobs: each waits for a person's decision. */
  readonly discarded: bigint
  readonly parked: readonly ParkedReason[]
  /** Queues with jobs that no live worker serves. */
  readonly unserved: readonly QueueRow[]
}

const WORKERS_SHOWN = 200
const REASONS_SHOWN = 50

/** What version the schema has, and whether this release can work with it. */
export async function schemaStatus(database: Database): Promise<SchemaStatus> {
  const expected = (await readMigrations()).at(-1)?.version ?? 0
  const found = await readVersion(database.queryable, database.schema, expected)
  const version = found?.version ?? null
  const facts = { name: database.schema, version, expected }
  if (found === undefined || found.version === 0) return { ...facts, state: 'missing' }
  if (found.version < expected) return { ...facts, state: 'older' }
  if (found.version > expected) return { ...facts, state: found.breaking ? 'newer-and-breaking' : 'newer' }
  return { ...facts, state: 'current' }
}

/** The state of everything on one screen. */
export async function readStatus(database: Database, schema: SchemaStatus): Promise<Status> {
  const queues = await listQueues(database)
  const workers = await run(database, listWorkers, { limit: WORKERS_SHOWN })
  const parked = await run(database, listParkedReasons, { limit: REASONS_SHOWN })
  const { now, scheduled, nextDueAt, discarded } = await runOne(database, findStatus, {})
  const unserved = queues.filter(
    (queue) => queue.workers === 0 && queue.available + queue.scheduled + queue.parked > 0n,
  )
  return { schema, now, workers, queues, scheduled, nextDueAt, discarded, parked, unserved }
}

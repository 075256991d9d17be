import type { FewJobs } from '../jobs/sql/claim-few-jobs.ts'
import type { ClaimedBatch } from '../jobs/sql/claim-jobs.ts'
import type { Lease } from './lease.ts'

/** A job that this worker holds under a lease. */
export interface ClaimedJob {
  readonly id: string
  readonly lease: Lease
  /** Its place in the lease, from 1. */
  readonly place: number
  /** `null`: the job's row is gone. */
  readonly name: string | null
  readonly queue: string
  readonly tenant: string
  /** Number of this attempt, from 1. */
  readonly attempt: number
  readonly maxAttempts: number
  /** 0: may wait in a buffer; 1: needs a free slot; 2: has lost two workers, runs one at a time. */
  readonly care: number
  readonly enqueuedAtMs: number
  readonly scheduledAtMs: number
  /** True if it holds a unique key. */
  readonly keyed: boolean
  /** True if an attempt left a checkpoint, or told of its progress. */
  readonly hasCheckpoint: boolean
  readonly context: unknown
  readonly input: unknown
}

type Extra = readonly [
  care: number,
  keyed: boolean,
  runAt: number | null,
  tenant: string,
  context: unknown,
  hasCheckpoint: boolean | null,
]
const NO_EXTRA: Extra = [0, false, null, '', null, null]

/** The jobs of a claim under their new lease, in the order in which they are to start. `queue` is the one of all if one was asked. */
export function readBatch(batch: ClaimedBatch, lease: Lease, queue: string): readonly ClaimedJob[] {
  const { attempts } = batch
  const ids = batch.ids ?? []
  const names = batch.names as readonly (string | null)[]
  const queues = batch.queues as readonly string[] | null
  const maxAttempts = batch.maxAttempts ?? []
  const enqueuedAts = batch.enqueuedAts ?? []
  const inputs = batch.inputs as readonly unknown[]
  const extras = batch.extras as Readonly<Record<string, Extra>> | null
  return ids.map((id, i) => {
    // Looked up only where there is something: a name of a property made for each id costs more than all the rest.
    const [care, keyed, runAt, tenant, context, hasCheckpoint] = extras?.[id] ?? NO_EXTRA
    const enqueuedAtMs = numberOf(enqueuedAts[i])
    return {
      id,
      lease,
      place: i + 1,
      name: names[i] as string | null,
      queue: queues === null ? queue : (queues[i] as string),
      tenant,
      attempt: attempts === null ? 1 : numberOf(attempts[i]),
      maxAttempts: numberOf(maxAttempts[i]),
      care,
      enqueuedAtMs,
      scheduledAtMs: runAt ?? enqueuedAtMs,
      keyed,
      hasCheckpoint: hasCheckpoint ?? false,
      context,
      input: inputs[i],
    }
  })
}

/** The jobs of a small claim. */
export function readFew(rows: readonly FewJobs[], lease: Lease, queue: string): readonly ClaimedJob[] {
  return rows.map((row) => {
    const enqueuedAtMs = Number(row.enqueuedAt)
    return {
      id: row.jobId as string,
      lease,
      place: row.place as number,
      name: row.name,
      queue,
      tenant: row.tenant ?? '',
      attempt: row.attempt as number,
      maxAttempts: row.maxAttempts ?? 0,
      care: row.care as number,
      enqueuedAtMs,
      scheduledAtMs: row.runAt === null ? enqueuedAtMs : Number(row.runAt),
      keyed: row.keyed ?? false,
      hasCheckpoint: row.hasCheckpoint ?? false,
      context: row.context,
      input: row.input,
    }
  })
}

/** 0 for the `NULL` of a job whose row is gone. */
function numberOf(text: string | undefined): number {
  return Number(text) || 0
}

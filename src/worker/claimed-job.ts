import type { ClaimedBatch } from '../jobs/sql/claim-jobs.ts'

/** A job that this worker holds under a lease. */
export interface ClaimedJob {
  readonly id: string
  /** Fencing token of the lease. */
  readonly token: bigint
  /** The life of this worker that claimed it: a process declared dead goes on under another id. */
  readonly workerId: bigint
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
  readonly context: unknown
  readonly input: unknown
}

type Extra = readonly [care: number, keyed: boolean, runAt: number | null, tenant: string, context: unknown]
const NO_EXTRA: Extra = [0, false, null, '', null]

/** The jobs of a claim, in the order in which they are to start. */
export function readBatch(batch: ClaimedBatch, workerId: bigint): readonly ClaimedJob[] {
  const token = batch.token
  if (token === null) return []
  const column = <T>(values: unknown): readonly T[] => values as readonly T[]
  const names = column<string | null>(batch.names)
  const queues = column<string>(batch.queues)
  const attempts = column<number>(batch.attempts)
  const maxAttempts = column<number>(batch.maxAttempts)
  const enqueuedAts = column<number | null>(batch.enqueuedAts)
  const inputs = column<unknown>(batch.inputs)
  const extras = column<Extra | null>(batch.extras)
  return column<string>(batch.ids).map((id, i) => {
    const [care, keyed, runAt, tenant, context] = extras[i] ?? NO_EXTRA
    const enqueuedAt = enqueuedAts[i] ?? 0
    return {
      id,
      token,
      workerId,
      name: names[i] as string | null,
      queue: queues[i] as string,
      tenant,
      attempt: attempts[i] as number,
      maxAttempts: maxAttempts[i] as number,
      care,
      enqueuedAtMs: Math.round(enqueuedAt),
      scheduledAtMs: Math.round(runAt ?? enqueuedAt),
      keyed,
      context,
      input: inputs[i],
    }
  })
}

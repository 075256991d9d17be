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
  readonly priority: number
  /** 0: may wait in a buffer; 1: needs a free slot; 2: has lost two workers, runs one at a time. */
  readonly care: number
  readonly seq: bigint
  readonly enqueuedAtMs: number
  readonly scheduledAtMs: number
  /** True if it holds a unique key. */
  readonly keyed: boolean
  readonly contract: string | null
  readonly context: unknown
  readonly input: unknown
}

/** The jobs of a claim, in the order in which they are to start. */
export function readBatch(batch: ClaimedBatch, workerId: bigint): readonly ClaimedJob[] {
  const token = batch.token
  if (token === null) return []
  const column = <T>(values: unknown): readonly T[] => values as readonly T[]
  const names = column<string | null>(batch.names)
  const queues = column<string>(batch.queues)
  const attempts = column<number>(batch.attempts)
  const maxAttempts = column<number>(batch.maxAttempts)
  const priorities = column<number>(batch.priorities)
  const cares = column<number>(batch.cares)
  const seqs = column<string>(batch.seqs)
  const enqueuedAts = column<number>(batch.enqueuedAts)
  const scheduledAts = column<number>(batch.scheduledAts)
  const keyed = column<boolean>(batch.keyed)
  const tenants = column<string>(batch.tenants)
  const contracts = column<string | null>(batch.contracts)
  const contexts = column<unknown>(batch.contexts)
  const inputs = column<unknown>(batch.inputs)
  return column<string>(batch.ids).map((id, i) => ({
    id,
    token,
    workerId,
    name: names[i] as string | null,
    queue: queues[i] as string,
    tenant: tenants[i] as string,
    attempt: attempts[i] as number,
    maxAttempts: maxAttempts[i] as number,
    priority: priorities[i] as number,
    care: cares[i] as number,
    seq: BigInt(seqs[i] as string),
    enqueuedAtMs: enqueuedAts[i] as number,
    scheduledAtMs: scheduledAts[i] as number,
    keyed: keyed[i] as boolean,
    contract: contracts[i] as string | null,
    context: contexts[i],
    input: inputs[i],
  }))
}

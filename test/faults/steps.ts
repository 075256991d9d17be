import type { Driver } from '../../src/driver/driver.ts'
import { type Database, runOne } from '../../src/driver/operation.ts'
import { claimJobs } from '../../src/jobs/sql/claim-jobs.ts'
import { enqueueJobs } from '../../src/jobs/sql/enqueue-jobs.ts'
import { registerWorker } from '../../src/jobs/sql/register-worker.ts'
import { type AttemptItem, settleAttempts } from '../../src/jobs/sql/settle-attempts.ts'
import { settleCompleted } from '../../src/jobs/sql/settle-completed.ts'
import { type ClaimedJob, readBatch } from '../../src/worker/claimed-job.ts'
import { Lease } from '../../src/worker/lease.ts'

/** The statements of a worker, one by one, for tests that decide themselves in which order they run. */

export function databaseOf(driver: Driver): Database {
  return { queryable: driver, schema: 'holdfast', prepare: true }
}

export async function register(database: Database, leaseMs = 30_000): Promise<bigint> {
  const { id } = await runOne(database, registerWorker, {
    name: 'step',
    app: 'test',
    version: '0',
    leaseMs,
    queues: '[]',
    jobs: '[]',
    queueNames: ['default'],
  })
  return id
}

export interface JobSpec {
  readonly priority?: number
  readonly maxAttempts?: number
}

export async function enqueue(database: Database, count: number, spec: JobSpec = {}): Promise<string[]> {
  const item = { n: 'step', q: 'default', p: spec.priority ?? 0, m: spec.maxAttempts ?? 20, c: 'c', i: null }
  const { ids } = await runOne(database, enqueueJobs, { items: JSON.stringify(Array(count).fill(item)) })
  return JSON.parse(ids) as string[]
}

export async function claim(
  database: Database,
  workerId: bigint,
  wanted: number,
  options: { readonly free?: number; readonly suspects?: boolean } = {},
): Promise<readonly ClaimedJob[]> {
  const priorities = Array.from({ length: 10 }, (_, priority) => priority)
  const batch = await runOne(database, claimJobs, {
    workerId,
    queues: ['default'],
    wanted: [wanted],
    free: [options.free ?? wanted],
    classQueues: priorities.map(() => 'default'),
    classPriorities: priorities,
    lastPriorities: priorities,
    after: priorities.map(() => 0n),
    upto: priorities.map(() => 2n ** 62n),
    suspects: options.suspects ?? true,
  })
  const { token, ids } = batch
  return token === null || ids === null
    ? []
    : readBatch(batch, new Lease(token, workerId, ids.length), 'default')
}

/** Records the jobs as completed; gives the ids that were refused. */
export async function complete(
  database: Database,
  workerId: bigint,
  jobs: readonly Pick<ClaimedJob, 'id' | 'lease' | 'place'>[],
): Promise<string[]> {
  const leases = [...new Set(jobs.map((job) => job.lease))]
  const { refused } = await runOne(database, settleCompleted, {
    workerId,
    tokens: leases.map((lease) => lease.token),
    jobIds: jobs.map((job) => job.id),
    leases: jobs.map((job) => leases.indexOf(job.lease) + 1),
    places: jobs.map((job) => job.place),
    durationsMs: jobs.map(() => 1),
    results: [],
    keyedIds: [],
  })
  return (refused ?? []) as string[]
}

/** Records other ends of attempts; gives the ids that were refused. */
export async function settle(
  database: Database,
  workerId: bigint,
  jobs: readonly Pick<ClaimedJob, 'id' | 'lease'>[],
  end: Omit<AttemptItem, 'token' | 'job'>,
): Promise<string[]> {
  const items = jobs.map(
    (job): AttemptItem => ({ token: String(job.lease.token), job: job.id, ms: 1, ...end }),
  )
  const { refused } = await runOne(database, settleAttempts, {
    workerId,
    tokens: [...new Set(jobs.map((job) => job.lease.token))],
    items: JSON.stringify(items),
    keep: 20,
  })
  return (refused ?? []) as string[]
}

export const failed = { to: 'scheduled', ended: 'failed', delay: 0, error: { message: 'failed' } } as const
export const handedBack = { to: 'ready', ended: 'handed-back' } as const

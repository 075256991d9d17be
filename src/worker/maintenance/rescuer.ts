import type { EventHub } from '../../base/events.ts'
import type { Driver } from '../../driver/driver.ts'
import { type Database, runOne } from '../../driver/operation.ts'
import { retryTransaction } from '../../driver/transaction.ts'
import { lockLostLeases } from '../../jobs/sql/lock-lost-leases.ts'
import { requeueLostLeases } from '../../jobs/sql/requeue-lost-leases.ts'

/** Leases of one transaction: at most so many times 400 jobs. */
const LEASES_AT_ONCE = 25
/** Wait after the second crash in a row; doubled with each further one. */
const CRASH_BACKOFF_MS = 2000

type JobRow = readonly [jobId: string, queue: string, attempt: number, workerId: string]

/**
 * Takes back the jobs of every lease that ran out, in bounded transactions, until none is left.
 *
 * A rescue is two statements of one transaction, for the reason that {@link requeueLostLeases} tells. A crash in
 * between leaves everything as it was. Several rescuers share the work.
 *
 * @returns The queues that have jobs again.
 */
export async function rescueJobs(
  driver: Driver,
  database: Database,
  events: EventHub,
): Promise<readonly string[]> {
  const queues = new Set<string>()
  for (;;) {
    const rescued = await retryTransaction(
      async () => await driver.transaction(async (tx) => await rescueSome({ ...database, queryable: tx })),
    )
    if (rescued === undefined) return [...queues]
    const { requeued, discarded, orphans, leases } = rescued
    for (const [, queue] of requeued) queues.add(queue)
    const workerIds = [...new Set([...requeued, ...discarded].map(([, , , workerId]) => workerId))]
    if (requeued.length + discarded.length > 0) {
      events.emit('jobs.rescued', { requeued: requeued.length, discarded: discarded.length, workerIds })
    }
    if (orphans > 0) {
      const error = new Error(
        `${orphans} claimed jobs have no row in "job" any more; their ids were dropped with the lease`,
      )
      events.emit('worker.error', { during: 'rescue', error, retryInMs: 0 })
    }
    if (leases < LEASES_AT_ONCE) return [...queues]
  }
}

async function rescueSome(tx: Database) {
  const { tokens, workerIds } = await runOne(tx, lockLostLeases, { limit: LEASES_AT_ONCE })
  if (tokens === null && workerIds === null) return undefined
  const lost = (tokens ?? []) as readonly string[]
  const answer = await runOne(tx, requeueLostLeases, {
    tokens: lost,
    workerIds: (workerIds ?? []) as readonly string[],
    backoffMs: BigInt(CRASH_BACKOFF_MS),
  })
  return {
    requeued: (answer.requeued ?? []) as readonly JobRow[],
    discarded: (answer.discarded ?? []) as readonly JobRow[],
    orphans: answer.orphans,
    leases: lost.length,
  }
}

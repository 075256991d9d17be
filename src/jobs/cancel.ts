import { sleep } from '../base/sleep.ts'
import type { Driver } from '../driver/driver.ts'
import { type Database, run, runOne } from '../driver/operation.ts'
import { retryTransaction } from '../driver/transaction.ts'
import { announceCancel } from './sql/announce-cancel.ts'
import { cancelJob } from './sql/cancel-job.ts'
import { lockLeaseOfJob } from './sql/lock-lease-of-job.ts'

/** What a cancel found and did. */
export type CancelAnswer =
  /** It was waiting and has ended cancelled. */
  | { readonly status: 'cancelled' }
  /** It is executing: it will end cancelled whatever its handler does, which is told so now. */
  | { readonly status: 'cancelling' }
  /** It had ended before; nothing was changed. */
  | { readonly status: 'finished'; readonly state: string }
  | { readonly status: 'not-found' }

export interface CancelServices {
  readonly driver: Driver
  readonly database: Database
}

/** Looks for a job that moves between tables while it is looked for. */
const LOOKS = 8

/** Cancels a job wherever it is; decided once, in the database. See {@link cancelJob}. */
export async function cancel(
  jobId: string,
  reason: string | undefined,
  services: CancelServices,
): Promise<CancelAnswer> {
  const { driver, database } = services
  for (let look = 1; look <= LOOKS; look += 1) {
    const found = await retryTransaction(
      async () =>
        await driver.transaction(async (tx) => {
          const inside = { ...database, queryable: tx }
          await run(inside, lockLeaseOfJob, { jobId })
          return await runOne(inside, cancelJob, { jobId, reason: reason ?? null })
        }),
    )
    if (found.was === 'waiting') return { status: 'cancelled' }
    if (found.was === 'finished') return { status: 'finished', state: found.state as string }
    if (found.was === 'executing') {
      await run(database, announceCancel, { workerId: found.workerId as bigint })
      return { status: 'cancelling' }
    }
    await sleep(5 * 2 ** look)
  }
  return { status: 'not-found' }
}

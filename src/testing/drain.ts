import { monotonicMs } from '../base/clock.ts'
import type { Database } from '../driver/operation.ts'
import { DrainError } from './errors.ts'
import { readEnqueued } from './expect-enqueued.ts'
import type { JobEnd, JobOutcome } from './job-end.ts'
import { AttemptStuck, type TestWorker } from './test-worker.ts'
import type { TestClock } from './virtual-clock.ts'

/** How far a drain goes. */
export interface DrainOptions {
  /** Attempts that are run at most: 1 and more. Default: 10,000. */
  readonly maxJobs?: number | undefined
  /**
   * True: goes on until nothing is scheduled either, moving the clock to the next due time whenever nothing is due: retries,
   * snoozes and delayed jobs run too. Default: false.
   */
  readonly advance?: boolean | undefined
  /** How long it may take in all, in real milliseconds. Default: 4,000, so that it ends before a test's own time does. */
  readonly timeoutMs?: number | undefined
}

/** What a drain has run, by what became of it: each attempt is in one of the lists, in the order in which they ran. */
export interface DrainReport {
  readonly completed: readonly JobEnd[]
  /** Failed, and another attempt follows. */
  readonly retried: readonly JobEnd[]
  readonly discarded: readonly JobEnd[]
  readonly cancelled: readonly JobEnd[]
  readonly snoozed: readonly JobEnd[]
  readonly parked: readonly JobEnd[]
  /** All of them. */
  readonly all: readonly JobEnd[]
}

export interface DrainParts {
  readonly worker: TestWorker
  readonly clock: TestClock
  readonly database: Database
}

const MAX_NAMED = 10

/** @throws {DrainError} There is no end: `maxJobs` or `timeoutMs` was reached. */
export async function drain(
  { worker, clock, database }: DrainParts,
  {
    maxJobs,
    advance,
    timeoutMs,
  }: { readonly maxJobs: number; readonly advance: boolean; readonly timeoutMs: number },
): Promise<DrainReport> {
  const untilMs = monotonicMs() + timeoutMs
  const all: JobEnd[] = []
  const over = (jobs: DrainError['jobs'], cause?: unknown) =>
    new DrainError({ reason: 'deadline', ran: all.length, limit: timeoutMs, jobs }, { cause })
  for (;;) {
    if (monotonicMs() >= untilMs) throw over([])
    if (all.length >= maxJobs) await requireNoneDue(worker, database, all.length)
    const end = await worker.runNext(untilMs - monotonicMs()).catch((error: unknown) => {
      if (!(error instanceof AttemptStuck)) throw error
      throw over([{ id: error.claimed.id, name: error.claimed.name ?? '' }], error)
    })
    if (end !== undefined) {
      all.push(end)
      continue
    }
    const { dueInMs } = worker
    if (!advance || dueInMs === undefined) return reportOf(all)
    await clock.advance(Math.max(0, dueInMs))
  }
}

async function requireNoneDue(worker: TestWorker, database: Database, ran: number): Promise<void> {
  if (!(await worker.isDue())) return
  const due = (await readEnqueued(database)).filter(({ state }) => state === 'available')
  throw new DrainError({ reason: 'max-jobs', ran, limit: ran, jobs: due.slice(0, MAX_NAMED) })
}

function reportOf(all: readonly JobEnd[]): DrainReport {
  const of = (outcome: JobOutcome) => all.filter((end) => end.outcome === outcome)
  return {
    completed: of('completed'),
    retried: of('retried'),
    discarded: of('discarded'),
    cancelled: of('cancelled'),
    snoozed: of('snoozed'),
    parked: of('parked'),
    all,
  }
}

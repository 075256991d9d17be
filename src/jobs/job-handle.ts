import { checkNumber } from '../base/check.ts'
import { InvalidArgumentError, JobNotFoundError } from '../base/errors.ts'
import { limits } from '../base/limits.ts'
import { sleep } from '../base/sleep.ts'
import { run } from '../driver/operation.ts'
import { type CancelAnswer, type CancelServices, cancel } from './cancel.ts'
import { type FoundJob, findJob } from './sql/find-job.ts'
import { findOutcome } from './sql/find-outcome.ts'
import type { JobState } from './state.ts'

/** How a job ended. */
export interface JobEnd {
  readonly state: 'completed' | 'cancelled' | 'discarded'
  readonly result: unknown
  readonly reason: string | null
  readonly attempts: number
  readonly finishedAt: Date
}

/** How far a job has come, as its handler told by `ctx.progress`. */
export interface JobProgress {
  /** 0 to 1; never falls, over all attempts. */
  readonly fraction: number
  readonly note: string | null
  readonly updatedAt: Date
}

/** A job as it is now. */
export type JobSnapshot = Omit<
  FoundJob,
  'state' | 'checkpoint' | 'progress' | 'progressNote' | 'progressAt'
> & {
  readonly state: JobState
  /** What `ctx.checkpoint` kept last; `undefined` if nothing. */
  readonly checkpoint: unknown
  /** `undefined` if the handler never told. */
  readonly progress: JobProgress | undefined
}

const MAX_ID = 2n ** 63n - 1n
const POLL_FIRST_MS = 20
const POLL_MAX_MS = 500

/** A handle on one job, by id. */
export class JobHandle {
  readonly id: string
  readonly #services: CancelServices

  /** @internal Use `app.job(id)`. */
  constructor(id: string, services: CancelServices) {
    if (!/^[1-9]\d{0,18}$/.test(id) || BigInt(id) > MAX_ID)
      throw new InvalidArgumentError({ field: 'id', problem: 'must be the id of a job' })
    this.id = id
    this.#services = services
  }

  /** The job as it is now; `undefined` if there is none, or its retention is over. */
  async get(): Promise<JobSnapshot | undefined> {
    const [job] = await run(this.#services.database, findJob, { jobId: this.id })
    return job === undefined ? undefined : snapshotOf(job)
  }

  /**
   * Waits until the job has ended. Polls, with waits of up to half a second.
   *
   * @param options.timeoutMs How long to wait, 0 to 24 days. Default: for ever. @param options.signal Ends the wait.
   * @returns How it ended; `undefined` if it had not when the time was over or the signal aborted.
   * @throws {JobNotFoundError} There is no such job.
   */
  async wait(
    options: { readonly timeoutMs?: number; readonly signal?: AbortSignal } = {},
  ): Promise<JobEnd | undefined> {
    const timeoutMs =
      checkNumber('timeoutMs', options.timeoutMs, { ...limits.timeoutMs, min: 0 }) ?? Number.POSITIVE_INFINITY
    const untilMs = performance.now() + timeoutMs
    for (let pollMs = POLL_FIRST_MS; ; pollMs = Math.min(POLL_MAX_MS, pollMs * 1.5)) {
      const [end] = await run(this.#services.database, findOutcome, { jobId: this.id })
      if (end !== undefined) return end as unknown as JobEnd
      if (pollMs === POLL_FIRST_MS && (await this.get()) === undefined)
        throw new JobNotFoundError({ jobId: BigInt(this.id) })
      const leftMs = untilMs - performance.now()
      if (leftMs <= 0 || options.signal?.aborted) return undefined
      await sleep(Math.min(pollMs, leftMs), options.signal)
    }
  }

  /**
   * Cancels the job. A waiting one never starts; an executing one is told within a second, wherever it runs, and
   * ends cancelled even if its handler succeeds or fails meanwhile. Decided once, in the database. Safe to repeat.
   */
  async cancel(options: { readonly reason?: string } = {}): Promise<CancelAnswer> {
    return await cancel(this.id, options.reason, this.#services)
  }
}

function snapshotOf({ progress, progressNote: note, progressAt: updatedAt, ...job }: FoundJob): JobSnapshot {
  return {
    ...job,
    state: job.state as JobState,
    checkpoint: job.checkpoint ?? undefined,
    progress: progress === null || updatedAt === null ? undefined : { fraction: progress, note, updatedAt },
  }
}

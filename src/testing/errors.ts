import { HoldfastError } from '../base/errors.ts'

/** A job, as far as an error has to name it. */
export interface NamedJob {
  readonly id: string
  readonly name: string
}

/**
 * A drain did not come to its end: jobs went on making jobs, or a handler did not return. A handler that still ran was told
 * to stop, and writes nothing any more.
 */
export class DrainError extends HoldfastError {
  override readonly name = 'DrainError'
  readonly code = 'DRAIN'
  /** `max-jobs`: so many were run, and more are due. `deadline`: the time is up. */
  readonly reason: 'max-jobs' | 'deadline'
  /** What still ran; with `max-jobs`, what was due. At most ten. */
  readonly jobs: readonly NamedJob[]

  constructor(
    facts: {
      readonly reason: 'max-jobs' | 'deadline'
      readonly ran: number
      readonly limit: number
      readonly jobs: readonly NamedJob[]
    },
    options?: ErrorOptions,
  ) {
    const { reason, ran, limit, jobs } = facts
    const named = jobs.map(({ id, name }) => `${name} (job ${id})`).join(', ')
    super(
      reason === 'max-jobs'
        ? `the drain ran ${ran} jobs, which is its maxJobs, and more are due: ${named}; does a job enqueue itself?`
        : `the drain was not over after ${limit} ms and ${ran} jobs; ${named === '' ? 'nothing ran just then' : `still running: ${named}`}; raise timeoutMs if that is right`,
      options,
    )
    this.reason = reason
    this.jobs = jobs
  }
}

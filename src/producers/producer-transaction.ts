import type { QueryResult } from '../driver/query-result.ts'
import { requireDeclared } from '../effects/declared.ts'
import type { EffectName, EnqueuedName } from '../effects/effect-name.ts'
import type { AnyJob, JobInput, JobNamed } from '../jobs/define-job.ts'
import type { JobToEnqueue } from '../jobs/enqueue.ts'
import type { EnqueueAnswer, EnqueueOptions } from '../jobs/enqueue-options.ts'

/** A transaction that a producer can work in. */
export interface OpenWork {
  query(text: string, values: readonly unknown[]): Promise<QueryResult>
  enqueue(job: AnyJob, input: unknown, options: Omit<EnqueueOptions, 'tx'>): Promise<EnqueueAnswer>
  enqueueMany(jobs: readonly JobToEnqueue[]): Promise<readonly EnqueueAnswer[]>
}

/** A job that a producer has enqueued, or in a dry run would have. */
export interface IntendedEnqueue {
  readonly jobName: string
  readonly input: unknown
  readonly options: Omit<EnqueueOptions, 'tx'>
  /** `existing`: a job with that key was there, so that none is stored. */
  readonly status: EnqueueAnswer['status']
}

/**
 * The transaction of a producer: statements of yours, and enqueues of the jobs that it declares. `Effect` is the union
 * of its effects.
 */
export class ProducerTransaction<Effect extends string = never> {
  readonly #work: OpenWork
  readonly #producer: { readonly name: string; readonly effects: readonly EffectName[] }
  readonly #onEnqueue: (enqueue: IntendedEnqueue) => void

  /** @internal */
  constructor(
    work: OpenWork,
    producer: { readonly name: string; readonly effects: readonly EffectName[] },
    onEnqueue: (enqueue: IntendedEnqueue) => void = () => {},
  ) {
    this.#work = work
    this.#producer = producer
    this.#onEnqueue = onEnqueue
  }

  /**
   * Runs a statement of yours with `$1` placeholders; values and rows are converted by the driver (`pg` or
   * PGlite), as if you had called it yourself.
   *
   * @throws What the driver throws. In PostgreSQL the transaction is then aborted: let it end.
   */
  async query<R = Record<string, unknown>>(
    text: string,
    values: readonly unknown[] = [],
  ): Promise<QueryResult<R>> {
    return (await this.#work.query(text, values)) as QueryResult<R>
  }

  /**
   * As `app.enqueue`, in this transaction, of jobs that the producer's effects name.
   *
   * @throws {UndeclaredEffectError} They do not name this job. Nothing was sent.
   */
  async enqueue<J extends JobNamed<EnqueuedName<Effect>>>(
    job: J,
    input: JobInput<J>,
    options: Omit<EnqueueOptions, 'tx'> = {},
  ): Promise<EnqueueAnswer> {
    this.#require(job)
    const answer = await this.#work.enqueue(job, input, options)
    this.#onEnqueue({ jobName: job.name, input, options, status: answer.status })
    return answer
  }

  /** As `app.enqueueMany`, in this transaction, of jobs that the producer's effects name. Throws as {@link enqueue}. */
  async enqueueMany(
    jobs: readonly (JobToEnqueue & { readonly job: JobNamed<EnqueuedName<Effect>> })[],
  ): Promise<readonly EnqueueAnswer[]> {
    // What is no array of jobs is refused below, by its own name.
    if (Array.isArray(jobs)) for (const item of jobs) this.#require((item as JobToEnqueue | null)?.job)
    const answers = await this.#work.enqueueMany(jobs)
    for (const [index, { job, input, ...options }] of jobs.entries()) {
      const status = answers[index]?.status ?? 'created'
      this.#onEnqueue({ jobName: job.name, input, options, status })
    }
    return answers
  }

  /** @internal What it works in, for a producer that is run inside another one. */
  get work(): OpenWork {
    return this.#work
  }

  #require(job: AnyJob | null | undefined): void {
    const { name, effects } = this.#producer
    requireDeclared({ kind: 'producer', name }, effects, `enqueue:${job?.name}`)
  }
}

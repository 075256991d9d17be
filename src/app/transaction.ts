import type { OpenTransaction } from '../driver/driver.ts'
import type { AnyJob, JobInput } from '../jobs/define-job.ts'
import type { Enqueuer, JobToEnqueue } from '../jobs/enqueue.ts'
import type { EnqueueAnswer, EnqueueOptions } from '../jobs/enqueue-options.ts'

/** Rows of a statement of yours, as your driver gives them. */
export interface QueryResult<R = Record<string, unknown>> {
  readonly rows: readonly R[]
  /** Rows that were read, inserted, updated or deleted. */
  readonly rowCount: number
}

/** The transaction of `app.transaction`: statements of yours and enqueues, committed together. */
export class Transaction {
  readonly #queryable: OpenTransaction
  readonly #enqueuer: Enqueuer

  /** @internal */
  constructor(queryable: OpenTransaction, enqueuer: Enqueuer) {
    this.#queryable = queryable
    this.#enqueuer = enqueuer
  }

  /**
   * Runs a statement of yours with `$1` placeholders; values and rows are converted by the driver (`pg`, also with
   * a postgres.js instance, or PGlite), as if you had called it yourself.
   *
   * @throws What the driver throws. In PostgreSQL the transaction is then aborted: let it end.
   */
  async query<R = Record<string, unknown>>(
    text: string,
    values: readonly unknown[] = [],
  ): Promise<QueryResult<R>> {
    return (await this.#queryable.queryAsUser(text, values)) as QueryResult<R>
  }

  /** As `app.enqueue`, in this transaction. */
  async enqueue<J extends AnyJob>(
    job: J,
    input: JobInput<J>,
    options: Omit<EnqueueOptions, 'tx'> = {},
  ): Promise<EnqueueAnswer> {
    return await this.#enqueuer.enqueue(job, input, { ...options, tx: this.#queryable })
  }

  /** As `app.enqueueMany`, in this transaction. */
  async enqueueMany(jobs: readonly JobToEnqueue[]): Promise<readonly EnqueueAnswer[]> {
    return await this.#enqueuer.enqueueMany(jobs, { tx: this.#queryable })
  }
}

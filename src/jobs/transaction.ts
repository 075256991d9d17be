import { InvalidArgumentError } from '../base/errors.ts'
import type { OpenTransaction } from '../driver/driver.ts'
import type { Database } from '../driver/operation.ts'
import { performInTransaction, requireKey } from '../effects/transaction-effects.ts'
import type { AnyJob, JobInput } from './define-job.ts'
import type { Enqueuer, JobToEnqueue } from './enqueue.ts'
import type { EnqueueAnswer, EnqueueOptions } from './enqueue-options.ts'

/** Rows of a statement of yours, as your driver gives them. */
export interface QueryResult<R = Record<string, unknown>> {
  readonly rows: readonly R[]
  /** Rows that were read, inserted, updated or deleted. */
  readonly rowCount: number
}

export interface TransactionParts {
  readonly queryable: OpenTransaction
  readonly enqueuer: Enqueuer
  readonly schema: string
  readonly tenant: string
  /** Refuses an effect or a job that the caller has not declared. */
  readonly requireDeclared: (effect: string) => void
}

/** A transaction of ours: statements of yours, enqueues and effects on this database, committed together. */
export class Transaction {
  readonly #parts: TransactionParts
  readonly #effects = new Set<string>()

  /** @internal Given by `app.transaction`, `ctx.transaction` and `ctx.commit`. */
  constructor(parts: TransactionParts) {
    this.#parts = parts
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
    return (await this.#parts.queryable.queryAsUser(text, values)) as QueryResult<R>
  }

  /** As `app.enqueue`, in this transaction. */
  async enqueue<J extends AnyJob>(
    job: J,
    input: JobInput<J>,
    options: Omit<EnqueueOptions, 'tx'> = {},
  ): Promise<EnqueueAnswer> {
    const { queryable, enqueuer } = this.#parts
    return await enqueuer.enqueue(job, input, { ...options, tx: queryable })
  }

  /** As `app.enqueueMany`, in this transaction. */
  async enqueueMany(jobs: readonly JobToEnqueue[]): Promise<readonly EnqueueAnswer[]> {
    const { queryable, enqueuer } = this.#parts
    return await enqueuer.enqueueMany(jobs, { tx: queryable })
  }

  /**
   * Runs `fn` once for `key`, over all transactions that commit: for writes by this transaction that must not be made a
   * second time by another job or a later one. The record of it commits and rolls back with them. Wait for it: what has
   * not ended when the transaction commits is in doubt.
   *
   * @param name What it does, such as `write:sales.invoice`. @param options.key What it is for: 1 to 1,024 bytes.
   * @returns What `fn` gave, now or when it ran, as JSON holds it.
   * @throws {EffectUncertainError} The key was used by `ctx.effect`, and what came of that is not known. A job whose
   *   transaction ends by it is discarded as by `ctx.effect`.
   * @throws {InvalidArgumentError} The key cannot be right, or is under way in this transaction.
   * @throws {NotStorableError} {@link TooLargeError} The result cannot be kept: more than 256 KiB, or no JSON. What
   *   `fn` threw.
   */
  async effect<T>(name: string, options: { readonly key: string }, fn: () => T | Promise<T>): Promise<T> {
    const { queryable, schema, tenant, requireDeclared } = this.#parts
    requireDeclared(name)
    const effect = { tenant, name, key: requireKey(options?.key) }
    const id = JSON.stringify([effect.name, effect.key])
    if (this.#effects.has(id)) {
      const problem = `"${effect.key}" of ${name} is under way in this transaction; wait for it`
      throw new InvalidArgumentError({ field: 'key', problem })
    }
    this.#effects.add(id)
    try {
      const database: Database = { queryable, schema, prepare: false }
      return (await performInTransaction(database, effect, fn)) as T
    } finally {
      this.#effects.delete(id)
    }
  }
}

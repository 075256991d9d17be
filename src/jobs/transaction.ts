import { InvalidArgumentError } from '../base/errors.ts'
import type { OpenTransaction } from '../driver/driver.ts'
import type { Database } from '../driver/operation.ts'
import type { QueryResult } from '../driver/query-result.ts'
import { checkEffect, type EffectName, type InsideEffect, isOutside } from '../effects/effect-name.ts'
import { performInTransaction, requireKey } from '../effects/transaction-effects.ts'
import type { AnyJob, JobInput } from './define-job.ts'
import type { Enqueuer, JobToEnqueue } from './enqueue.ts'
import type { EnqueueAnswer, EnqueueOptions } from './enqueue-options.ts'

/** Whose transaction it is. */
export interface EnqueueParts {
  readonly tenant: string
  /** Refuses an effect that the caller has not declared. */
  readonly requireDeclared: (effect: EffectName) => void
  /** Options of an enqueue, with what the caller passes on. */
  readonly inherit: (
    options: Omit<EnqueueOptions, 'tx'> | undefined,
  ) => Omit<EnqueueOptions, 'tx'> | undefined
}

export interface TransactionParts extends EnqueueParts {
  readonly queryable: OpenTransaction
  readonly enqueuer: Enqueuer
  readonly schema: string
}

/** A transaction of ours: statements of yours, enqueues and effects on this database, committed together. */
export class Transaction {
  readonly #parts: TransactionParts
  readonly #effects = new Set<string>()

  /** @internal Given by `app.transaction`, `ctx.transaction` and `ctx.commit`. */
  constructor(parts: TransactionParts) {
    this.#parts = parts
  }

  /** @internal The driver's own, for calls that are given this as `tx`. */
  get queryable(): OpenTransaction {
    return this.#parts.queryable
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
    return (await this.#parts.queryable.queryAsUser(text, values)) as QueryResult<R>
  }

  /** As `app.enqueue`, in this transaction. */
  async enqueue<J extends AnyJob>(
    job: J,
    input: JobInput<J>,
    options: Omit<EnqueueOptions, 'tx'> = {},
  ): Promise<EnqueueAnswer> {
    const { queryable, enqueuer, inherit, requireDeclared } = this.#parts
    requireDeclared(`enqueue:${job?.name}`)
    return await enqueuer.enqueue(job, input, { ...inherit(options), tx: queryable })
  }

  /** As `app.enqueueMany`, in this transaction. */
  async enqueueMany(jobs: readonly JobToEnqueue[]): Promise<readonly EnqueueAnswer[]> {
    const { queryable, enqueuer, inherit, requireDeclared } = this.#parts
    // What is no array of jobs is refused by the enqueue, by its own name.
    const own = Array.isArray(jobs) ? jobs.map((item) => ({ ...item, ...inherit(item) })) : jobs
    if (Array.isArray(jobs)) for (const item of jobs) requireDeclared(`enqueue:${item?.job?.name}`)
    return await enqueuer.enqueueMany(own, { tx: queryable })
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
  async effect<T>(
    name: InsideEffect,
    options: { readonly key: string },
    fn: () => T | Promise<T>,
  ): Promise<T> {
    const { queryable, schema, tenant, requireDeclared } = this.#parts
    if (isOutside(checkEffect('name', name))) {
      const problem =
        'must be an effect on this database, such as "write:sales.invoice": use ctx.effect for others'
      throw new InvalidArgumentError({ field: 'name', problem })
    }
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

/**
 * Who asked for a job, and why: members of a JSON object, such as actor, company and request id. An application gives
 * them types by declaring its own: `declare module 'holdfast' { interface ContextData { readonly actor?: string } }`.
 */
export interface ContextData {
  readonly [member: string]: unknown
}

/** How a job is enqueued. Everything is checked before anything is sent. */
export interface EnqueueOptions {
  /**
   * Your open transaction, as your driver or ORM gives it: a `pg` client after `begin`; the `sql` of postgres.js's
   * `begin`; the `tx`, `trx`, entity manager or transaction of PGlite, Drizzle, Kysely, Knex, TypeORM, MikroORM,
   * Sequelize or Prisma 7. The job is stored by it and commits or rolls back with it, to a savepoint too. Await the
   * enqueue: one that comes after the end is refused. Default: a transaction of its own.
   */
  readonly tx?: unknown
  /** Queue to put it in. Default: the job's. Must be configured in the application. */
  readonly queue?: string | undefined
  /** 0 to 9, lower starts first. Default: the job's, which is 0 unless it says otherwise. */
  readonly priority?: number | undefined
  /** When it is due, by PostgreSQL's clock. An instant in the past means now. Not together with `delayMs`. Default: now. */
  readonly runAt?: Date | undefined
  /** Due in so many milliseconds from now: 0 to about 100 years. Default: 0. */
  readonly delayMs?: number | undefined
  /** Attempts before the job is discarded: 1 to 1,000. Default: the job's, which is 20 unless it says otherwise. */
  readonly maxAttempts?: number | undefined
  /**
   * While a job of the same name and key is not ended, no second one is stored, and the answer is `existing`
   * with its id. 1 to 1,024 bytes, one line. Default: none.
   */
  readonly uniqueKey?: string | null | undefined
  /**
   * Makes this call safe to repeat: for 24 hours a repetition gets the same answer, whatever has become of the
   * job. 1 to 1,024 bytes, one line; one namespace for all jobs in the schema. Default: none.
   */
  readonly idempotencyKey?: string | null | undefined
  /**
   * Who asked for it: an object of JSON values that travels with the job to `ctx.context`, `authorize`, log lines, and the
   * jobs that its handler enqueues. Not secret: operators see it. At most 4 KiB as JSON. Default: none, or that of the
   * job whose `ctx.enqueue` is called; `null` is none there too.
   */
  readonly context?: ContextData | null | undefined
}

/** What became of one job that was enqueued. */
export interface EnqueueAnswer {
  /** Id of the job, new or found. 64 bits, as text. */
  readonly id: string
  /**
   * `created`: stored by this call, or by the one that it repeats under the same idempotency key. `existing`: a job
   * with that unique key was there; nothing was stored.
   */
  readonly status: 'created' | 'existing'
}

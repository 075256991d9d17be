import { checkNumber } from '../base/check.ts'
import { monotonicMs } from '../base/clock.ts'
import { InvalidArgumentError, OutcomeUnknownError, UnavailableError } from '../base/errors.ts'
import { toRecordableJson, toStorableJson, truncateUtf8 } from '../base/json.ts'
import { limits } from '../base/limits.ts'
import { sleep } from '../base/sleep.ts'
import { type Database, run, runOne } from '../driver/operation.ts'
import { type AttemptIds, requireLive } from '../effects/effect-store.ts'
import { completeInTransaction } from '../jobs/sql/complete-in-transaction.ts'
import { fenceAttempt } from '../jobs/sql/fence-attempt.ts'
import { findCompletion } from '../jobs/sql/find-completion.ts'
import { lockLease } from '../jobs/sql/lock-lease.ts'
import { saveCheckpoint } from '../jobs/sql/save-checkpoint.ts'
import { saveProgress } from '../jobs/sql/save-progress.ts'
import type { EnqueueParts, Transaction } from '../jobs/transaction.ts'

/** How long the fate of a commit without an answer is asked for. */
const DECIDE_MS = 30_000
const DECIDE_WAIT_MAX_MS = 1000

/** What an attempt writes through, beside its outcome. */
export interface WriteServices {
  readonly database: Database
  /** Runs `fn` in a transaction of ours, for a tenant; `inside` are our own statements in it. */
  readonly transact: <T>(
    fn: (tx: Transaction, inside: Database) => Promise<T>,
    parts: EnqueueParts,
  ) => Promise<T>
  /** Our own statements in a transaction of the user's. */
  readonly databaseOf: (tx: unknown) => Database
  /** How long PostgreSQL lets such a transaction do nothing: a hung one keeps its lease from being rescued. */
  readonly idleMs: number | undefined
}

/** What is stored of a commit, and what its caller gets. */
export interface Committed {
  readonly result: unknown
  /** Something in the result had to be replaced. */
  readonly altered: string | undefined
}

/**
 * What an attempt writes before it ends. Each write is one conditional statement, or one transaction that begins with one:
 * after the lease went to somebody else, none changes anything.
 */
export class FencedWrites {
  readonly #services: WriteServices
  readonly #ids: AttemptIds
  readonly #parts: EnqueueParts

  constructor(services: WriteServices, ids: AttemptIds, parts: EnqueueParts) {
    this.#services = services
    this.#ids = ids
    this.#parts = parts
  }

  async checkpoint(value: unknown): Promise<void> {
    const options = { field: 'checkpoint', maxBytes: limits.checkpointBytes.default }
    const json = toStorableJson(value, options)
    requireLive(
      await runOne(this.#services.database, saveCheckpoint, { ...this.#ids, value: json }),
      this.#ids,
    )
  }

  async progress(fraction: number, note: string | undefined): Promise<void> {
    checkNumber('fraction', fraction, FRACTION)
    if (note !== undefined && typeof note !== 'string')
      throw new InvalidArgumentError({ field: 'note', problem: 'must be text' })
    const text = note === undefined ? null : noteOf(note)
    requireLive(
      await runOne(this.#services.database, saveProgress, { ...this.#ids, fraction, note: text }),
      this.#ids,
    )
  }

  async fence(tx: unknown): Promise<void> {
    await this.#fence(this.#services.databaseOf(tx))
  }

  async transaction<T>(fn: (tx: Transaction) => Promise<T> | T): Promise<T> {
    return await this.#transact(async (tx) => await fn(tx))
  }

  /**
   * Runs `fn` and completes the job in one transaction. `completing` is told right before the completion is sent, and may
   * refuse it by throwing; from then on the outcome is PostgreSQL's.
   */
  async commit(
    fn: (tx: Transaction) => unknown,
    facts: { readonly startedMs: number; readonly late: () => boolean; readonly completing: () => void },
  ): Promise<Committed> {
    let committed: Committed | undefined
    const { startedMs, completing, late } = facts
    try {
      await this.#transact(async (tx, inside) => {
        const value = resultOf(await fn(tx))
        completing()
        const completion = {
          ...this.#ids,
          durationMs: Math.round(monotonicMs() - startedMs),
          late: late(),
          result: value.json,
        }
        requireLive(await runOne(inside, completeInTransaction, completion), this.#ids)
        committed = {
          result: value.json === null ? undefined : JSON.parse(value.json),
          altered: value.altered,
        }
      })
    } catch (error) {
      if (committed === undefined || !(error instanceof OutcomeUnknownError)) throw error
      if (!(await this.#wasCommitted(error)))
        throw new UnavailableError({ operation: 'commit' }, { cause: error })
    }
    return committed as unknown as Committed
  }

  async #transact<T>(fn: (tx: Transaction, inside: Database) => Promise<T>): Promise<T> {
    const { transact, idleMs } = this.#services
    return await transact(async (tx, inside) => {
      if (idleMs !== undefined) await inside.queryable.query(SET_IDLE, [String(idleMs)])
      await this.#fence(inside)
      return await fn(tx, inside)
    }, this.#parts)
  }

  async #fence(database: Database): Promise<void> {
    requireLive(await runOne(database, fenceAttempt, this.#ids), this.#ids)
  }

  /**
   * What became of a commit whose answer was lost. The lease is waited for: while the transaction lives, it holds it. A
   * lease that is gone was taken by a rescue, or ended with its last job, after that transaction.
   *
   * @throws {OutcomeUnknownError} The database did not say in time.
   */
  async #wasCommitted(lost: OutcomeUnknownError): Promise<boolean> {
    const { jobId, token } = this.#ids
    const untilMs = monotonicMs() + DECIDE_MS
    for (let waitMs = 20; ; waitMs = Math.min(DECIDE_WAIT_MAX_MS, waitMs * 2)) {
      try {
        return await this.#services.transact(async (_, inside) => {
          await run(inside, lockLease, { token })
          return (await run(inside, findCompletion, { jobId, token })).length > 0
        }, this.#parts)
      } catch {
        if (monotonicMs() > untilMs) throw lost
        await sleep(waitMs)
      }
    }
  }
}

/** Of the transaction only; PostgreSQL ends the session then, and the lease is free. */
const SET_IDLE = `select pg_catalog.set_config('idle_in_transaction_session_timeout', $1::text, true)`

const FRACTION = {
  default: undefined,
  min: 0,
  max: 1,
  unit: 'of the whole',
  integer: false,
  description: 'How much of the job is done.',
} as const

/** As a handler's result is kept: whatever it is, the job completes. */
function resultOf(value: unknown): { readonly json: string | null; readonly altered: string | undefined } {
  if (value === undefined) return { json: null, altered: undefined }
  const { json, altered, problem } = toRecordableJson(value, { maxBytes: limits.resultBytes.default })
  return { json, altered: altered ? (problem ?? 'altered') : undefined }
}

function noteOf(text: string): string {
  const { json } = toRecordableJson(text, { maxBytes: 1 << 20 })
  return truncateUtf8(String(JSON.parse(json)), limits.noteBytes.default)
}

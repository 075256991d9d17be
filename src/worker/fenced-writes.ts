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

/** Longest wait between two questions about a commit whose answer was lost. */
const ASK_WAIT_MAX_MS = 1000

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

/** The answer to a commit that completes its job was lost, and so was the chance to ask; `cause` is the lost answer. */
export class UndecidedCommitError extends Error {
  override readonly name = 'UndecidedCommitError'
}

/** What a commit that completes its job needs to know. */
export interface CommitFacts {
  /** By the monotonic clock. */
  readonly startedMs: number
  readonly late: () => boolean
  /** Called right before the completion is sent; may refuse it by throwing. From then on the outcome is PostgreSQL's. */
  readonly completing: () => void
  /** False once nobody may ask any more what became of a commit without an answer: the lease is lost, or the worker ends. */
  readonly mayAsk: () => boolean
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

  async checkpoint(value: unknown): Promise<unknown> {
    const options = { field: 'checkpoint', maxBytes: limits.checkpointBytes.default }
    const json = toStorableJson(value, options)
    requireLive(
      await runOne(this.#services.database, saveCheckpoint, { ...this.#ids, value: json }),
      this.#ids,
    )
    return JSON.parse(json)
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
    await this.#fence(this.#services.databaseOf(tx), null)
  }

  async transaction<T>(fn: (tx: Transaction) => Promise<T> | T): Promise<T> {
    return await this.#transact(async (tx) => await fn(tx))
  }

  /**
   * Runs `fn` and completes the job in one transaction.
   *
   * @throws {UndecidedCommitError} Nobody can tell whether it was committed.
   */
  async commit(fn: (tx: Transaction) => unknown, facts: CommitFacts): Promise<Committed> {
    let committed: Committed | undefined
    const { startedMs, completing, late, mayAsk } = facts
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
      if (!(await this.#wasCommitted(error, mayAsk)))
        throw new UnavailableError({ operation: 'commit' }, { cause: error })
    }
    return committed as unknown as Committed
  }

  async #transact<T>(fn: (tx: Transaction, inside: Database) => Promise<T>): Promise<T> {
    const { transact, idleMs } = this.#services
    return await transact(async (tx, inside) => {
      await this.#fence(inside, idleMs ?? null)
      return await fn(tx, inside)
    }, this.#parts)
  }

  async #fence(database: Database, idleMs: number | null): Promise<void> {
    requireLive(await runOne(database, fenceAttempt, { ...this.#ids, idleMs }), this.#ids)
  }

  /**
   * What became of a commit whose answer was lost. The lease is waited for: while the transaction lives, it holds it. A
   * lease that is gone was taken by a rescue, or ended with its last job, after that transaction. Asked for as long as
   * it may be: a commit on its way could still complete a job that had been given a retry meanwhile.
   */
  async #wasCommitted(lost: OutcomeUnknownError, mayAsk: () => boolean): Promise<boolean> {
    const { jobId, token } = this.#ids
    for (let waitMs = 20; mayAsk(); waitMs = Math.min(ASK_WAIT_MAX_MS, waitMs * 2)) {
      try {
        return await this.#services.transact(async (_, inside) => {
          await run(inside, lockLease, { token })
          return (await run(inside, findCompletion, { jobId, token })).length > 0
        }, this.#parts)
      } catch {
        await sleep(waitMs)
      }
    }
    throw new UndecidedCommitError('the database did not say whether it committed', { cause: lost })
  }
}

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

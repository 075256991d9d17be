import { HoldfastError, TransactionAbortedError, TransactionRequiredError } from '../base/errors.ts'
import { sleep } from '../base/sleep.ts'
import type { OpenTransaction, RawRow, StatementOptions, UserResult, WireValue } from './driver.ts'
import { isRetryable } from './postgres-error.ts'

/** A connection on which a transaction can be opened. */
export interface TransactionConnection extends OpenTransaction {
  /**
   * Runs a statement without parameters or rows and gives its command tag. `commit` answers `ROLLBACK` when
   * the transaction was aborted.
   */
  command(text: string, options: StatementOptions): Promise<string>
  /** Marks the connection as unusable: it may still be inside a transaction. */
  destroy(error: unknown): void
}

const CONTROL_DEADLINE_MS = 30_000
const openTransactions = new WeakSet<object>()

export interface TransactionOptions {
  /** Client-side deadline of each statement, where it has none of its own. */
  readonly deadlineMs?: number
  /** True behind a transaction pooler: nothing is prepared. */
  readonly unnamed?: boolean
}

/** True for a transaction that a driver of ours opened and that has not ended. */
export function isOpenTransaction(tx: unknown): tx is OpenTransaction {
  return typeof tx === 'object' && tx !== null && openTransactions.has(tx)
}

/**
 * Runs `fn` between `begin` and `commit` on `connection`, at READ COMMITTED whatever the role's default is.
 *
 * When `fn` throws, rolls back and throws the same; a connection that cannot even roll back is destroyed, and
 * PostgreSQL rolls back by itself.
 *
 * @throws {TransactionAbortedError} `fn` hid the error of a statement: nothing was committed.
 * @throws {OutcomeUnknownError} The answer to `commit` was lost.
 */
export async function runTransaction<T>(
  connection: TransactionConnection,
  fn: (tx: OpenTransaction) => Promise<T>,
  options: TransactionOptions = {},
): Promise<T> {
  const deadlineMs = options.deadlineMs ?? CONTROL_DEADLINE_MS
  const begin = { operation: 'begin', repeatable: true, deadlineMs }
  await connection.command('begin isolation level read committed', begin)
  const tx = new DriverTransaction(connection, options)
  let result: T
  try {
    result = await fn(tx)
  } catch (error) {
    tx.end()
    await rollback(connection, deadlineMs)
    throw error
  }
  tx.end()
  const tag = await connection.command('commit', { operation: 'commit', deadlineMs })
  if (tag !== 'COMMIT') throw new TransactionAbortedError()
  return result
}

/** The `tx` given to a callback. A statement after the end is refused: it would run outside any transaction. */
export class DriverTransaction implements OpenTransaction {
  readonly keepsStatements: boolean
  readonly #connection: OpenTransaction
  readonly #options: TransactionOptions
  #ended = false

  constructor(connection: OpenTransaction, options: TransactionOptions = {}) {
    this.#connection = connection
    this.#options = options
    this.keepsStatements = connection.keepsStatements === true && options.unnamed !== true
    openTransactions.add(this)
  }

  async query(
    text: string,
    values: readonly WireValue[],
    options: StatementOptions = {},
  ): Promise<readonly RawRow[]> {
    this.#requireOpen()
    const { name, ...others } = options
    const { deadlineMs, unnamed } = this.#options
    // Repeatable, whatever it is: a transaction whose connection broke before `commit` was sent changes nothing.
    return await this.#connection.query(text, values, {
      ...(deadlineMs === undefined ? {} : { deadlineMs }),
      ...(unnamed || name === undefined ? {} : { name }),
      ...others,
      repeatable: true,
    })
  }

  async queryAsUser(text: string, values: readonly unknown[]): Promise<UserResult> {
    this.#requireOpen()
    return await this.#connection.queryAsUser(text, values)
  }

  #requireOpen(): void {
    if (this.#ended) throw new TransactionRequiredError({ problem: 'this one has ended' })
  }

  end(): void {
    this.#ended = true
    openTransactions.delete(this)
  }
}

const RETRY_ATTEMPTS = 6
const RETRY_BASE_MS = 5
const RETRY_CAP_MS = 250

/**
 * Runs `fn`, a whole transaction of ours, again when PostgreSQL ended it for the sake of another one
 * (40001, 40P01, 55P03): six times at most, after waits of up to 250 ms with full jitter.
 *
 * @throws What `fn` threw last.
 */
export async function retryTransaction<T>(fn: () => Promise<T>, signal?: AbortSignal): Promise<T> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await fn()
    } catch (error) {
      if (attempt >= RETRY_ATTEMPTS || signal?.aborted || !isRetryable(error)) throw error
      await sleep(Math.random() * Math.min(RETRY_CAP_MS, RETRY_BASE_MS * 4 ** attempt), signal)
    }
  }
}

async function rollback(connection: TransactionConnection, deadlineMs: number): Promise<void> {
  try {
    await connection.command('rollback', { operation: 'rollback', repeatable: true, deadlineMs })
  } catch (error) {
    // The callback's error is the one to tell; the connection ends here, and the transaction with it.
    connection.destroy(
      error instanceof HoldfastError ? error : new Error('rollback failed', { cause: error }),
    )
  }
}

import {
  ClosedError,
  HoldfastError,
  InvalidArgumentError,
  OutsideTransactionError,
  TransactionAbortedError,
} from '../base/errors.ts'
import type {
  Driver,
  Listener,
  ListenerEvents,
  OpenTransaction,
  RawRow,
  Session,
  StatementOptions,
  WireValue,
} from '../driver/driver.ts'
import { quoteIdentifier } from '../driver/identifier.ts'
import { mapError, sqlStateOf } from '../driver/postgres-error.ts'
import { DriverTransaction } from '../driver/transaction.ts'
import { type PgliteInstance, queryPglite, queryPgliteAsUser } from './pglite-connection.ts'
import { startPgliteListener } from './pglite-listener.ts'
import { type OpenPglite, openPglite, watchTransactions } from './pglite-open.ts'

export interface PgliteDriverOptions {
  /** Where the embedded database keeps its files; left out together with `instance`, it is in memory only. */
  readonly folder?: string | undefined
  /** An instance of yours. It is used, never closed. */
  readonly instance?: PgliteInstance
}

/**
 * Makes a driver over PGlite, PostgreSQL inside this process. Opens the folder when first used.
 *
 * Everything shares one connection: a transaction makes all else wait, and a statement cannot be given up, so
 * that `deadlineMs` has no effect. The library never sets `idle_in_transaction_session_timeout`, which would
 * hang the process.
 *
 * The first use fails with `FolderLockedError` if another process has the folder open, and with
 * `CompositionError` if PGlite is not installed; the next use tries again.
 */
export function createPgliteDriver(options: PgliteDriverOptions = {}): Driver {
  if (options.instance !== undefined && options.folder !== undefined) {
    throw new InvalidArgumentError({
      field: 'database',
      problem: 'needs either a folder or a PGlite instance',
    })
  }
  return new PgliteDriver(options)
}

class PgliteDriver implements Driver {
  readonly kind = 'pglite'
  readonly singleConnection = true
  readonly poolLimit = Number.POSITIVE_INFINITY
  readonly #open: () => Promise<OpenPglite>
  readonly #listeners = new Set<Listener>()
  #opening: Promise<OpenPglite> | undefined
  #isInside = (): boolean => false
  #closed = false

  constructor(options: PgliteDriverOptions) {
    this.#open = async () => {
      const opened = await openPglite(options)
      this.#isInside = opened.isInsideTransaction
      return opened
    }
    // At once: a transaction that is opened before our first use has to be known too.
    if (options.instance) this.#isInside = watchTransactions(options.instance).isInsideTransaction
  }

  /** It has no client of pg. */
  isDirect(): boolean {
    return false
  }

  requireOutside(): void {
    if (this.#isInside()) throw new OutsideTransactionError()
  }

  async query(
    text: string,
    values: readonly WireValue[],
    options: StatementOptions = {},
  ): Promise<readonly RawRow[]> {
    const instance = await this.#enter()
    return await queryPglite(instance, text, values, options)
  }

  async transaction<T>(fn: (tx: OpenTransaction) => Promise<T>): Promise<T> {
    const instance = await this.#enter()
    let failure: { readonly error: unknown } | undefined
    try {
      return await instance.transaction(async (pgliteTx) => {
        const connection: OpenTransaction = {
          query: async (text, values, options = {}) => await queryPglite(pgliteTx, text, values, options),
          queryAsUser: async (text, values) => await queryPgliteAsUser(pgliteTx, text, values),
        }
        const tx = new DriverTransaction(connection)
        try {
          await connection.query('set transaction isolation level read committed', [])
          return await fn(tx)
        } catch (error) {
          failure = { error }
          throw error
        } finally {
          tx.end()
        }
      })
    } catch (error) {
      if (failure) throw failure.error
      if (isAbortedCommit(error)) throw new TransactionAbortedError({ cause: error })
      throw mapError(error, { operation: 'commit', sent: true, repeatable: false })
    }
  }

  async session(): Promise<Session> {
    this.#checkOpen()
    let released = false
    return {
      query: async (text, values, options) => {
        if (released) throw new ClosedError({ what: 'session' })
        return await this.query(text, values, options)
      },
      release: async () => {
        released = true
      },
    }
  }

  listen(channel: string, events: ListenerEvents): Listener {
    this.#checkOpen()
    const subscribe = async (onNotify: (payload: string) => void) =>
      await (await this.#enter()).listen(quoteIdentifier(channel), onNotify)
    const listener = startPgliteListener(subscribe, events)
    this.#listeners.add(listener)
    return listener
  }

  connectionConfig(): undefined {
    return undefined
  }

  async close(): Promise<void> {
    if (this.#closed) return
    await Promise.all([...this.#listeners].map(async (listener) => await listener.close()))
    this.#closed = true
    try {
      await (await this.#opening)?.close()
    } catch (error) {
      // An opening that failed was told to whoever asked for it, and left nothing open.
      if (!(error instanceof HoldfastError)) throw error
    }
  }

  /** The instance, for a call that is not inside one of its transactions: that one would wait for itself. */
  async #enter(): Promise<PgliteInstance> {
    this.#checkOpen()
    this.requireOutside()
    this.#opening ??= this.#open()
    try {
      return (await this.#opening).instance
    } catch (error) {
      this.#opening = undefined
      throw error
    }
  }

  #checkOpen(): void {
    if (this.#closed) throw new ClosedError({ what: 'driver' })
  }
}

/** PGlite has a class of its own for a `commit` that rolled back. */
function isAbortedCommit(error: unknown): boolean {
  return sqlStateOf(error) === '25P02' || (error instanceof Error && error.name === 'TransactionAbortedError')
}

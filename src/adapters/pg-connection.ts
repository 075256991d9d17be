import { UnavailableError } from '../base/errors.ts'
import { startTimer } from '../base/sleep.ts'
import type { RawRow, StatementOptions, UserResult, WireValue } from '../driver/driver.ts'
import { isConnectionError, mapError } from '../driver/postgres-error.ts'
import type { TransactionConnection } from '../driver/transaction.ts'
import { isStale, mayPrepare } from './pg-prepared.ts'

/** The subset of a pg client that is used, its own or one of a pool. */
export interface PgClient {
  query(config: PgQuery): Promise<PgResult>
  on(event: 'error' | 'end', listener: (error?: Error) => void): unknown
  on(event: 'notification', listener: (message: { readonly payload?: string | undefined }) => void): unknown
  removeListener(event: 'error' | 'end', listener: (error?: Error) => void): unknown
  /** On clients of a pool: gives it back, or with an error ends it. */
  release?(error?: Error | boolean): void
  end(): Promise<void>
  /** `T` in a transaction, `E` in an aborted one, `I` outside; since pg 8.23. */
  getTransactionStatus?(): string | null | undefined
  /** True if statements are sent before earlier ones are answered; since pg 8.23. */
  readonly pipeline?: boolean
  /** False while a statement is under way. */
  readonly readyForQuery?: boolean
}

/** The subset of a pg Pool that is used. */
export interface PgPool {
  connect(): Promise<PgClient>
  readonly totalCount: number
}

interface PgQuery {
  readonly text: string
  readonly values?: unknown[]
  readonly name?: string
  readonly types?: { getTypeParser: () => (value: string) => unknown }
}

interface PgResult {
  readonly command: string
  readonly rows: RawRow[]
  readonly rowCount: number | null
}

/** Columns as PostgreSQL writes them: parsers that somebody set on pg for the whole process do not matter. */
const RAW = { getTypeParser: () => (value: string) => value }

/** Sends one statement and gives its rows as text. Throws what pg throws. */
export async function queryPgClient(
  client: PgClient,
  text: string,
  values: readonly WireValue[],
  name?: string,
): Promise<readonly RawRow[]> {
  const named = name === undefined ? {} : { name }
  return (await client.query({ text, values: [...values], types: RAW, ...named })).rows
}

/** How a connection sends a statement: {@link queryPgClient}, or by what only connections of ours can do. */
export type SendStatement = typeof queryPgClient

/**
 * A pg client in our hands: connected, and ours until {@link release}.
 *
 * open → broken: its socket failed, or a deadline passed; every statement is refused from then on.
 * open or broken → released: it went back to its pool, or was ended.
 */
export class PgConnection implements TransactionConnection {
  readonly keepsStatements = true
  readonly #client: PgClient
  readonly #sendStatement: SendStatement
  readonly #onBroken = new Set<() => void>()
  readonly #onError: (error?: Error) => void
  #failure: { readonly error: unknown } | undefined
  #released = false
  #inTransaction = false

  constructor(client: PgClient, sendStatement: SendStatement = queryPgClient) {
    this.#client = client
    this.#sendStatement = sendStatement
    // A client whose error nobody listens to ends the process.
    this.#onError = (error) => this.#break(error)
    client.on('error', this.#onError)
    client.on('end', this.#onError)
  }

  get broken(): boolean {
    return this.#failure !== undefined
  }

  /** What broke the connection, if something did. */
  get failure(): unknown {
    return this.#failure?.error
  }

  async query(
    text: string,
    values: readonly WireValue[],
    options: StatementOptions = {},
  ): Promise<readonly RawRow[]> {
    return await this.#send(options, this.#ask(text, values, options))
  }

  async queryAsUser(text: string, values: readonly unknown[]): Promise<UserResult> {
    if (this.#failure) throw new UnavailableError({ operation: 'statement' }, { cause: this.#failure.error })
    try {
      const answer: PgResult | PgResult[] = await this.#client.query({ text, values: [...values] })
      // Several statements without values give a result each; the last one's is told, as `psql` does.
      const { rows, rowCount } = Array.isArray(answer) ? (answer.at(-1) as PgResult) : answer
      return { rows, rowCount: rowCount ?? rows.length }
    } catch (error) {
      if (isConnectionError(error)) this.destroy(error)
      throw error
    }
  }

  async command(text: string, options: StatementOptions): Promise<string> {
    this.#inTransaction = text.startsWith('begin')
    const { command } = await this.#send(options, () => this.#client.query({ text }))
    return command
  }

  onNotification(listener: (payload: string) => void): void {
    this.#client.on('notification', (message) => listener(message.payload ?? ''))
  }

  /** Calls `listener` when the connection breaks, or at once if it has. */
  onBroken(listener: () => void): void {
    if (this.broken) listener()
    else this.#onBroken.add(listener)
  }

  /** Ends the connection without a word to the server, which may not be answering. */
  destroy(error: unknown): void {
    this.#break(error)
    destroySocket(this.#client)
  }

  /**
   * Gives a sound connection back to its pool and ends every other one. With `keep: false` a sound one is ended
   * too, since its state (a LISTEN) must not reach others. Never throws; a second call does nothing.
   */
  async release(options: { readonly keep?: boolean } = {}): Promise<void> {
    if (this.#released) return
    this.#released = true
    this.#onBroken.clear()
    const ended = this.broken || options.keep === false
    if (!this.#client.release) return await endClient(this.#client)
    this.#client.release(ended)
    if (ended) return
    this.#client.removeListener('error', this.#onError)
    this.#client.removeListener('end', this.#onError)
  }

  async #send<T>(options: StatementOptions, send: () => Promise<T>): Promise<T> {
    const { operation = 'statement', repeatable = false, schema } = options
    if (this.#failure) throw new UnavailableError({ operation }, { cause: this.#failure.error })
    try {
      return await withDeadline(options.deadlineMs, send())
    } catch (error) {
      if (isConnectionError(error)) this.destroy(error)
      throw mapError(error, { operation, sent: true, repeatable, schema })
    }
  }

  #ask(
    text: string,
    values: readonly WireValue[],
    { name }: StatementOptions,
  ): () => Promise<readonly RawRow[]> {
    const client = this.#client
    if (name === undefined || !mayPrepare(client)) return () => this.#sendStatement(client, text, values)
    return () =>
      this.#sendStatement(client, text, values, name).catch((error: unknown) => {
        if (!isStale(client, error) || this.#inTransaction) throw error
        return this.#sendStatement(client, text, values)
      })
  }

  #break(error: unknown): void {
    if (this.#failure) return
    this.#failure = { error: error ?? new Error('the server ended the connection') }
    for (const listener of this.#onBroken) listener()
    this.#onBroken.clear()
  }
}

/** Fails once `deadlineMs` have passed; what becomes of `answer` then is nobody's business. */
function withDeadline<T>(deadlineMs: number | undefined, answer: Promise<T>): Promise<T> {
  if (deadlineMs === undefined) return answer
  return new Promise((resolve, reject) => {
    const stop = startTimer(deadlineMs, () => reject(new Error(`no answer within ${deadlineMs} ms`)))
    answer.then(
      (value) => {
        stop()
        resolve(value)
      },
      (error: unknown) => {
        stop()
        reject(error as Error)
      },
    )
  })
}

const END_GRACE_MS = 1000

/** Ends a client of ours politely, and after a second without an answer by its socket. Never throws. */
export async function endClient(client: PgClient): Promise<void> {
  const timer = setTimeout(() => destroySocket(client), END_GRACE_MS)
  try {
    await client.end()
  } catch {
    // It had broken before: there is nothing left to end.
  } finally {
    clearTimeout(timer)
  }
}

/** Cuts the socket of a client. */
export function destroySocket(client: object): void {
  const { connection } = client as { readonly connection?: { readonly stream?: { destroy?(): void } } }
  connection?.stream?.destroy?.()
}

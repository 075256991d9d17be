/** How a statement is sent, and how its failure is told. */
export interface StatementOptions {
  /** Name for a prepared statement; left out where the connection cannot keep one (a transaction pooler). */
  readonly name?: string
  /** Client-side deadline in milliseconds. Past it the connection is destroyed and the answer is lost. */
  readonly deadlineMs?: number
  /** What the statement is, for errors. Default: `statement`. */
  readonly operation?: string
  /** True if a repetition does no harm: a lost answer is then `UnavailableError`, not `OutcomeUnknownError`. */
  readonly repeatable?: boolean
  /** The schema whose tables it needs: if they are missing, `SchemaVersionError` names it. */
  readonly schema?: string
}

/** One row as the driver gave it; `operation` decodes it by the declared column types. */
export type RawRow = Readonly<Record<string, unknown>>

/** Every value crosses the border as text: no adapter's own encoding of arrays, dates or JSON is relied upon. */
export type WireValue = string | null

/**
 * The least that a statement needs: a connection, a pool, or somebody's open transaction.
 * `text` uses `$1` placeholders, each with its cast written out.
 */
export interface Queryable {
  /**
   * True if a statement that is sent with a name is kept prepared by the connections behind this, its plan with it. Of no
   * use for statements whose plan can go wrong as tables grow, unless the connections have settings against that.
   */
  readonly keepsStatements?: boolean
  query(text: string, values: readonly WireValue[], options?: StatementOptions): Promise<readonly RawRow[]>
}

/** What a statement of the user's own gave, converted by the driver as it always does. */
export interface UserResult {
  readonly rows: readonly unknown[]
  readonly rowCount: number
}

/** An open transaction of a driver of ours. */
export interface OpenTransaction extends Queryable {
  /** Runs a statement of the user's own, with the driver's own conversions. Throws what the driver throws. */
  queryAsUser(text: string, values: readonly unknown[]): Promise<UserResult>
}

/**
 * A connection that belongs to one component until it is released. Statements are sent one at a time, in order.
 *
 * When the connection breaks, the statement under way fails and the next one gets a new connection, so a
 * loop may go on after a failure. Nothing may be kept in the connection's own state (settings, advisory locks).
 */
export interface Session extends Queryable {
  /** Gives the connection back. Never throws; a second call does nothing. */
  release(): Promise<void>
}

export interface ListenerEvents {
  /** A notification on the channel. `payload` is short by construction. */
  readonly onNotify: (payload: string) => void
  /** The channel is being listened to (again): whatever was announced before is lost, so look for yourself. */
  readonly onUp: () => void
  /** The connection was lost; attempts to come back go on, with growing waits. */
  readonly onDown: (error: unknown) => void
}

export interface Listener {
  readonly up: boolean
  close(): Promise<void>
}

/** Owns connections to one database. The contract of `adapters/pg.ts` and `adapters/pglite.ts`. */
export interface Driver extends Queryable {
  /** Whose connections it was given. */
  readonly kind: 'pg' | 'postgres-js' | 'pglite'
  /** True if statements, heartbeats and listening share one connection (PGlite). */
  readonly singleConnection: boolean
  /** How many connections a pool of the user's can give, sessions and listeners included; infinite without one. */
  readonly poolLimit: number
  /**
   * True for a client of pg, whoever made it, that is connected to where this driver is and on which statements may be
   * prepared: nobody has said that there is a transaction pooler.
   */
  isDirect(client: object): boolean
  /**
   * Refuses to go on in what runs inside an open transaction, on a driver with a single connection: a call of
   * its own would wait for that transaction for ever. For callers that do not send their statement themselves.
   *
   * @throws {OutsideTransactionError} It runs inside one.
   */
  requireOutside(): void
  /**
   * Runs `fn` between `begin` and `commit`, at READ COMMITTED whatever the role's default is.
   * Rolls back when `fn` throws. A commit whose reply was lost throws `OutcomeUnknownError`; one that PostgreSQL
   * turned into a rollback, because `fn` hid an error, throws `TransactionAbortedError`.
   */
  transaction<T>(
    fn: (tx: OpenTransaction) => Promise<T>,
    options?: { readonly deadlineMs?: number },
  ): Promise<T>
  /** A connection of one's own, for a worker's claims and settles. On PGlite it is the shared one. */
  session(): Promise<Session>
  /** Listens on `channel` until closed, reconnecting by itself. Resolves before the first connection is up. */
  listen(channel: string, events: ListenerEvents): Listener
  /** What a thread needs to open connections of its own, as structured-cloneable data; `undefined` if it cannot. */
  connectionConfig(): unknown
  /** Closes what this driver opened itself; a pool or instance that the user passed stays open. */
  close(): Promise<void>
}

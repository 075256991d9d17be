import { checkName, checkNumber } from '../base/check.ts'
import { ClosedError, InvalidArgumentError } from '../base/errors.ts'
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
import { mapError } from '../driver/postgres-error.ts'
import { runTransaction } from '../driver/transaction.ts'
import { splitHosts } from './database-url.ts'
import { PgConnection, type PgPool } from './pg-connection.ts'
import { type PgHostConfig, PgHosts } from './pg-hosts.ts'
import { startPgListener } from './pg-listener.ts'

export interface PgDriverOptions {
  /** Address of the database; may name several hosts, of which the one that accepts writes is used. */
  readonly url?: string
  /** A pool of yours in place of an address. It is used, never ended; a session and a listener hold a client each. */
  readonly pool?: PgPool
  /** Name of the connections in `pg_stat_activity`, if the address gives none. Default: `holdfast`. */
  readonly applicationName?: string
  /** Connections of the pool made for `url`: 1 to 1,000. Default: 10. Sessions and listeners come on top. */
  readonly maxConnections?: number
  /**
   * True behind a transaction pooler such as pgbouncer: nothing is prepared and nothing is listened to, so that
   * jobs start at polling latency. Default: false.
   */
  readonly pooler?: boolean
}

const MAX_CONNECTIONS = {
  default: 10,
  min: 1,
  max: 1000,
  unit: 'count',
  integer: true,
  description: 'Connections of the pool made for an address.',
} as const
const KEEP_ALIVE_DELAY_MS = 10_000
const CONNECT_TIMEOUT_MS = 10_000
/** Of several hosts one may be unreachable for long: the others are not to wait for it. */
const CONNECT_TIMEOUT_OF_MANY_MS = 3000
const MAX_CHANNEL_BYTES = 63
const FIXED_PLANS = `select pg_catalog.set_config('enable_seqscan', 'off', false),
  pg_catalog.set_config('enable_bitmapscan', 'off', false),
  pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', false)`

/**
 * Makes a driver over pg. Connects when first used.
 *
 * @throws {InvalidArgumentError} Not exactly one of `url` and `pool`, or one of them cannot be right.
 */
export function createPgDriver(options: PgDriverOptions): Driver {
  const pooler = options.pooler ?? false
  if (options.pool !== undefined && options.url === undefined) {
    return new PgDriver(usePool(options.pool), { pooler, configs: undefined })
  }
  if (options.url === undefined || options.pool !== undefined) {
    throw new InvalidArgumentError({ field: 'database', problem: 'needs either an address or a pool' })
  }
  const max = checkNumber('maxConnections', options.maxConnections, MAX_CONNECTIONS)
  const applicationName = checkName('applicationName', options.applicationName ?? 'holdfast')
  const urls = splitHosts(options.url)
  const configs = urls.map(
    (connectionString): PgHostConfig => ({
      connectionString,
      application_name: applicationName,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
      connectionTimeoutMillis: urls.length > 1 ? CONNECT_TIMEOUT_OF_MANY_MS : CONNECT_TIMEOUT_MS,
    }),
  )
  return new PgDriver(new PgHosts(configs, { max, pooler }), { pooler, configs })
}

/** Where connections come from. */
interface PgConnections {
  connect(operation: string): Promise<PgConnection>
  /** A connection to keep. */
  open(operation: string): Promise<PgConnection>
  close(): Promise<void>
}

function usePool(pool: PgPool): PgConnections {
  const { options } = pool as { readonly options?: { readonly binary?: unknown } }
  if (options?.binary === true) {
    throw new InvalidArgumentError({
      field: 'database',
      problem: 'is a pool with "binary: true"; leave that out',
    })
  }
  const connect = async (operation: string): Promise<PgConnection> => {
    try {
      return new PgConnection(await pool.connect())
    } catch (error) {
      throw mapError(error, { operation, sent: false, repeatable: true })
    }
  }
  return { connect, open: connect, close: async () => {} }
}

class PgDriver implements Driver {
  readonly kind = 'pg'
  readonly singleConnection = false
  readonly #connections: PgConnections
  readonly #pooler: boolean
  readonly #configs: readonly PgHostConfig[] | undefined
  readonly #held = new Set<{ close(): Promise<void> }>()
  #closed = false

  constructor(
    connections: PgConnections,
    options: { readonly pooler: boolean; readonly configs: readonly PgHostConfig[] | undefined },
  ) {
    this.#connections = connections
    this.#pooler = options.pooler
    this.#configs = options.configs
  }

  /** A call of its own gets a connection of its own. */
  requireOutside(): void {}

  async query(
    text: string,
    values: readonly WireValue[],
    options: StatementOptions = {},
  ): Promise<readonly RawRow[]> {
    const connection = await this.#connect(options.operation ?? 'statement')
    try {
      return await connection.query(text, values, this.#allowed(options))
    } finally {
      await connection.release()
    }
  }

  async transaction<T>(
    fn: (tx: OpenTransaction) => Promise<T>,
    options: { readonly deadlineMs?: number } = {},
  ): Promise<T> {
    const connection = await this.#connect('begin')
    try {
      return await runTransaction(connection, fn, { ...options, unnamed: this.#pooler })
    } finally {
      await connection.release()
    }
  }

  async session(): Promise<Session> {
    this.#checkOpen()
    const session = new PgSession(
      async (operation) => await this.#openSession(operation),
      (options) => this.#allowed(options),
      () => this.#held.delete(session),
    )
    this.#held.add(session)
    return session
  }

  listen(channel: string, events: ListenerEvents): Listener {
    this.#checkOpen()
    if (Buffer.byteLength(channel) > MAX_CHANNEL_BYTES) {
      throw new InvalidArgumentError({ field: 'channel', problem: `may have ${MAX_CHANNEL_BYTES} bytes` })
    }
    if (this.#pooler) return { up: false, close: async () => {} }
    const listener = startPgListener({
      channel,
      events,
      open: async () => await this.#connections.open('listen'),
    })
    this.#held.add(listener)
    return listener
  }

  connectionConfig(): readonly PgHostConfig[] | undefined {
    return this.#configs
  }

  async close(): Promise<void> {
    this.#closed = true
    const held = [...this.#held].map(async (item) => await item.close())
    await Promise.all([...held, this.#connections.close()])
  }

  async #connect(operation: string): Promise<PgConnection> {
    this.#checkOpen()
    return await this.#connections.connect(operation)
  }

  /**
   * A session keeps the plans of its prepared statements. They must not follow the statistics: a plan made while
   * a table was empty reads it from end to end when it has grown.
   */
  async #openSession(operation: string): Promise<PgConnection> {
    const connection = await this.#connections.open(operation)
    if (this.#pooler) return connection
    try {
      await connection.query(FIXED_PLANS, [], { operation, repeatable: true, deadlineMs: CONNECT_TIMEOUT_MS })
      return connection
    } catch (error) {
      await connection.release({ keep: false })
      throw error
    }
  }

  #allowed(options: StatementOptions): StatementOptions {
    if (!this.#pooler || options.name === undefined) return options
    const { name: _, ...unnamed } = options
    return unnamed
  }

  #checkOpen(): void {
    if (this.#closed) throw new ClosedError({ what: 'driver' })
  }
}

/** A connection that is opened when first needed, and again after it broke. */
class PgSession implements Session {
  readonly #open: (operation: string) => Promise<PgConnection>
  readonly #allowed: (options: StatementOptions) => StatementOptions
  readonly #onReleased: () => void
  #connection: PgConnection | undefined
  /** Ends when every statement so far has. pg wants one at a time on a connection. */
  #idle: Promise<unknown> = Promise.resolve()
  #released = false

  constructor(
    open: (operation: string) => Promise<PgConnection>,
    allowed: (options: StatementOptions) => StatementOptions,
    onReleased: () => void,
  ) {
    this.#open = open
    this.#allowed = allowed
    this.#onReleased = onReleased
  }

  async query(
    text: string,
    values: readonly WireValue[],
    options: StatementOptions = {},
  ): Promise<readonly RawRow[]> {
    if (this.#released) throw new ClosedError({ what: 'session' })
    const answer = this.#idle.then(async () => {
      const connection = await this.#connect(options.operation ?? 'statement')
      return await connection.query(text, values, this.#allowed(options))
    })
    this.#idle = answer.catch(() => {})
    return await answer
  }

  async release(): Promise<void> {
    if (this.#released) return
    this.#released = true
    this.#onReleased()
    await this.#idle
    // Its settings are not for others.
    await this.#connection?.release({ keep: false })
  }

  async close(): Promise<void> {
    await this.release()
  }

  async #connect(operation: string): Promise<PgConnection> {
    if (this.#connection && !this.#connection.broken) return this.#connection
    await this.#connection?.release()
    this.#connection = undefined
    this.#connection = await this.#open(operation)
    return this.#connection
  }
}

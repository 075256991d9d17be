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
import { retryTransaction, runTransaction } from '../driver/transaction.ts'
import { splitHosts } from './database-url.ts'
import { PgConnection, type PgPool } from './pg-connection.ts'
import { type PgHostConfig, PgHosts } from './pg-hosts.ts'
import { startPgListener } from './pg-listener.ts'
import { addressOf, isConnectedTo, type PgAddress } from './pg-prepared.ts'
import { PgSession } from './pg-session.ts'
import { configsOf, limitOf, type PgConnections, usePool } from './pg-user-pool.ts'
import type { PostgresJsInstance } from './postgres-js.ts'
import { configsOfPostgresJs } from './postgres-js-options.ts'

export interface PgDriverOptions {
  /** Address of the database; may name several hosts, of which the one that accepts writes is used. */
  readonly url?: string
  /** A pool of yours in place of an address. It is used, never ended; a session and a listener hold a client each. */
  readonly pool?: PgPool
  /** An instance of postgres.js in place of an address: connections of our own are made as it makes its own. */
  readonly postgresJs?: PostgresJsInstance
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
  pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', false),
  pg_catalog.set_config('jit', 'off', false),
  pg_catalog.set_config('default_transaction_isolation', 'read committed', false)`

/**
 * Makes a driver over pg. Connects when first used.
 *
 * @throws {InvalidArgumentError} Not exactly one of `url`, `pool` and `postgresJs`, or it cannot be right.
 */
export function createPgDriver(options: PgDriverOptions): Driver {
  const pooler = options.pooler ?? false
  const applicationName = checkName('applicationName', options.applicationName ?? 'holdfast')
  const { url, pool, postgresJs } = options
  if ([url, pool, postgresJs].filter((given) => given !== undefined).length !== 1) {
    throw new InvalidArgumentError({
      field: 'database',
      problem: 'needs one of an address, a pool and an instance',
    })
  }
  if (pool !== undefined) {
    const configs = configsOf(pool, applicationName)
    return new PgDriver(usePool(pool, configs, pooler), {
      kind: 'pg',
      pooler,
      configs,
      poolLimit: configs === undefined ? limitOf(pool) : Number.POSITIVE_INFINITY,
    })
  }
  const max = checkNumber('maxConnections', options.maxConnections, MAX_CONNECTIONS)
  const configs =
    postgresJs === undefined
      ? configsOfUrl(url ?? '', applicationName)
      : configsOfPostgresJs(postgresJs, applicationName)
  return new PgDriver(new PgHosts(configs, { max, pooler }), {
    kind: postgresJs === undefined ? 'pg' : 'postgres-js',
    pooler,
    configs,
    poolLimit: Number.POSITIVE_INFINITY,
  })
}

function configsOfUrl(url: string, applicationName: string): readonly PgHostConfig[] {
  const urls = splitHosts(url)
  return urls.map((connectionString) => ({
    connectionString,
    application_name: applicationName,
    keepAlive: true,
    keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
    connectionTimeoutMillis: urls.length > 1 ? CONNECT_TIMEOUT_OF_MANY_MS : CONNECT_TIMEOUT_MS,
  }))
}

class PgDriver implements Driver {
  readonly kind: Driver['kind']
  readonly singleConnection = false
  readonly keepsStatements: boolean
  readonly poolLimit: number
  readonly #connections: PgConnections
  readonly #pooler: boolean
  readonly #configs: readonly PgHostConfig[] | undefined
  /** Where its connections go; made when first asked for. */
  #addresses: readonly PgAddress[] | undefined
  readonly #held = new Set<{ close(): Promise<void> }>()
  #closed = false

  constructor(
    connections: PgConnections,
    options: {
      readonly kind: Driver['kind']
      readonly pooler: boolean
      readonly configs: readonly PgHostConfig[] | undefined
      readonly poolLimit: number
    },
  ) {
    this.kind = options.kind
    this.poolLimit = options.poolLimit
    this.#connections = connections
    this.#pooler = options.pooler
    this.#configs = options.configs
    this.keepsStatements = !options.pooler
  }

  isDirect(client: object): boolean {
    if (this.#pooler || this.#configs === undefined) return false
    this.#addresses ??= this.#configs.map(addressOf)
    return isConnectedTo(client, this.#addresses)
  }

  /** A call of its own gets a connection of its own. */
  requireOutside(): void {}

  async query(
    text: string,
    values: readonly WireValue[],
    options: StatementOptions = {},
  ): Promise<readonly RawRow[]> {
    // A statement of its own that PostgreSQL ended for the sake of another one has changed nothing: a pool of the
    // user's may run at the role's default isolation.
    return await retryTransaction(async () => {
      const connection = await this.#connect(options.operation ?? 'statement')
      try {
        return await connection.query(text, values, this.#allowed(options))
      } finally {
        await connection.release()
      }
    })
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
    try {
      return structuredClone(this.#configs)
    } catch {
      // A password function, a TLS context: not for another thread.
      return undefined
    }
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

import pg from 'pg'
import { ClosedError } from '../base/errors.ts'
import { sleep } from '../base/sleep.ts'
import { mapError } from '../driver/postgres-error.ts'
import { destroySocket, endClient, PgConnection } from './pg-connection.ts'
import { querySubmitted } from './pg-statement.ts'

/** What pg needs to connect to one host. */
export interface PgHostConfig extends pg.ClientConfig {
  readonly application_name: string
  readonly keepAlive: true
  readonly keepAliveInitialDelayMillis: number
  readonly connectionTimeoutMillis: number
}

/** pg waits for the promise of `onConnect`; its types do not say so. */
type PoolOptions = Omit<pg.PoolConfig, 'onConnect'> & { onConnect: (client: pg.ClientBase) => Promise<void> }

const SETUP_TIMEOUT_MS = 5000
const CLOSE_GRACE_MS = 2000

/**
 * Connections to one database on one host or several, of which at most one accepts writes at a time.
 *
 * There is a pool for each host, made when first needed. Connecting starts with the host that worked last
 * and goes once round; a host that is down, in recovery, or read-only is passed over.
 */
export class PgHosts {
  readonly #configs: readonly PgHostConfig[]
  readonly #max: number
  readonly #setup: (client: pg.ClientBase) => Promise<void>
  readonly #pools = new Map<number, pg.Pool>()
  readonly #pooled = new Set<pg.ClientBase>()
  readonly #dedicated = new Set<pg.Client>()
  #current = 0
  #closed = false

  constructor(configs: readonly PgHostConfig[], options: { readonly max: number; readonly pooler: boolean }) {
    this.#configs = configs
    this.#max = options.max
    this.#setup = async (client) => {
      if (configs.length > 1) await requireWritable(client)
      // A role's default isolation would make single statements fail with 40001. A pooler's connection is
      // shared with others, so that its settings are not ours to change.
      if (!options.pooler) await send(client, "set default_transaction_isolation to 'read committed'")
    }
  }

  /** A pooled connection; `release` gives it back. */
  async connect(operation: string): Promise<PgConnection> {
    return await this.#firstWritable(
      operation,
      async (index) => new PgConnection(await this.#pool(index).connect(), querySubmitted),
    )
  }

  /** A connection outside the pool, so that it is there at any load; `release` ends it. */
  async open(operation: string): Promise<PgConnection> {
    return await this.#firstWritable(operation, async (index) => {
      const client = new pg.Client(this.#configs[index])
      this.#dedicated.add(client)
      client.once('end', () => this.#dedicated.delete(client))
      const connection = new PgConnection(client, querySubmitted)
      try {
        await client.connect()
        await this.#setup(client)
        if (this.#closed) throw new ClosedError({ what: 'driver' })
        return connection
      } catch (error) {
        destroySocket(client)
        this.#dedicated.delete(client)
        await endClient(client)
        throw error
      }
    })
  }

  /** Ends every connection, those in use too. Never throws. */
  async close(): Promise<void> {
    this.#closed = true
    const ended = new AbortController()
    const ending = Promise.allSettled([
      ...[...this.#pools.values()].map(async (pool) => await pool.end()),
      ...[...this.#dedicated].map(async (client) => await endClient(client)),
    ]).then(() => ended.abort())
    // Statements under way get this long; a server that does not answer gets no longer.
    await Promise.race([ending, sleep(CLOSE_GRACE_MS, ended.signal)])
    for (const client of [...this.#pooled, ...this.#dedicated]) destroySocket(client)
  }

  async #firstWritable<T>(operation: string, connect: (index: number) => Promise<T>): Promise<T> {
    let failure: unknown
    for (let step = 0; step < this.#configs.length; step += 1) {
      if (this.#closed) throw new ClosedError({ what: 'driver' })
      const index = (this.#current + step) % this.#configs.length
      try {
        const connected = await connect(index)
        this.#current = index
        return connected
      } catch (error) {
        failure = error
      }
    }
    throw mapError(failure, { operation, sent: false, repeatable: true })
  }

  #pool(index: number): pg.Pool {
    const known = this.#pools.get(index)
    if (known) return known
    const options: PoolOptions = {
      ...this.#configs[index],
      max: this.#max,
      allowExitOnIdle: true,
      onConnect: this.#setup,
    }
    const pool = new pg.Pool(options)
    // An idle connection that fails leaves the pool by itself; without a listener it ends the process.
    pool.on('error', () => {})
    pool.on('connect', (client) => this.#pooled.add(client))
    pool.on('remove', (client) => this.#pooled.delete(client))
    this.#pools.set(index, pool)
    return pool
  }
}

async function requireWritable(client: pg.ClientBase): Promise<void> {
  const { rows } = await send(
    client,
    `select (pg_catalog.pg_is_in_recovery()
      or pg_catalog.current_setting('default_transaction_read_only')::bool)::text as refused`,
  )
  const [row] = rows as readonly { readonly refused: string }[]
  if (row?.refused !== 'false') throw new Error('the host does not accept writes')
}

async function send(client: pg.ClientBase, text: string): Promise<pg.QueryResult> {
  // pg knows `query_timeout` on a statement; its types do not.
  const statement: pg.QueryConfig & { readonly query_timeout: number } = {
    text,
    query_timeout: SETUP_TIMEOUT_MS,
  }
  return await client.query(statement)
}

import type pg from 'pg'
import { InvalidArgumentError } from '../base/errors.ts'
import { mapError } from '../driver/postgres-error.ts'
import { PgConnection, type PgPool } from './pg-connection.ts'
import { type PgHostConfig, PgHosts } from './pg-hosts.ts'

const KEEP_ALIVE_DELAY_MS = 10_000
const CONNECT_TIMEOUT_MS = 10_000

/** Where connections come from. */
export interface PgConnections {
  connect(operation: string): Promise<PgConnection>
  /** A connection to keep. */
  open(operation: string): Promise<PgConnection>
  close(): Promise<void>
}

/** What of a pool's options says how to connect; the rest is about pooling. */
const CONNECTION_OPTIONS = [
  'connectionString',
  'host',
  'port',
  'user',
  'password',
  'database',
  'ssl',
  'options',
  'client_encoding',
] as const

/**
 * How the pool connects, if it tells: connections that a worker keeps are then made beside the pool, so that they
 * are there at any load and take nothing from the caller.
 */
export function configsOf(pool: PgPool, applicationName: string): readonly PgHostConfig[] | undefined {
  const { options } = pool as { readonly options?: Readonly<Record<string, unknown>> }
  if (options === undefined) return undefined
  // Read by name: pg hides the password from whoever lists the options.
  const given = CONNECTION_OPTIONS.flatMap((name) =>
    options[name] === undefined ? [] : [[name, options[name]]],
  )
  return [
    {
      ...(Object.fromEntries(given) as pg.ClientConfig),
      application_name: applicationName,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    },
  ]
}

export function usePool(
  pool: PgPool,
  configs: readonly PgHostConfig[] | undefined,
  pooler: boolean,
): PgConnections {
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
  if (configs === undefined) return { connect, open: connect, close: async () => {} }
  const beside = new PgHosts(configs, { max: 1, pooler })
  return {
    connect,
    open: async (operation) => await beside.open(operation),
    close: async () => await beside.close(),
  }
}

/** How many connections the pool gives at most, if it tells. */
export function limitOf(pool: PgPool): number {
  const { max } = (pool as { readonly options?: { readonly max?: unknown } }).options ?? {}
  return typeof max === 'number' ? max : Number.POSITIVE_INFINITY
}

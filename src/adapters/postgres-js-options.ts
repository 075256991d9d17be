import type { ConnectionOptions } from 'node:tls'
import { InvalidArgumentError } from '../base/errors.ts'
import type { PgHostConfig } from './pg-hosts.ts'
import type { PostgresJsInstance } from './postgres-js.ts'

const KEEP_ALIVE_DELAY_MS = 10_000
const CONNECT_TIMEOUT_MS = 10_000
/** Of several hosts one may be unreachable for long: the others are not to wait for it. */
const CONNECT_TIMEOUT_OF_MANY_MS = 3000

/** How postgres.js resolved what it was given: addresses, environment and defaults are in it already. */
interface PostgresJsOptions {
  readonly host: readonly string[]
  readonly port: readonly number[]
  /** Of a socket, in place of host and port: `/folder/.s.PGSQL.5432`. */
  readonly path?: string | false | undefined
  readonly database: string
  readonly user: string
  readonly pass?: string | (() => string | Promise<string>) | null | undefined
  readonly ssl?: boolean | string | ConnectionOptions | undefined
  readonly socket?: unknown
  readonly connection?: { readonly options?: unknown } | undefined
}

/** Encrypted without a look at the certificate, as postgres.js reads these words. */
const UNVERIFIED = { rejectUnauthorized: false }

/**
 * How the instance connects, for connections of pg beside it. `docs/decisions/0012-every-driver.md` says why its own
 * are not used. Types, transforms and settings of the instance stay behind: nothing of ours may depend on them.
 *
 * @throws {InvalidArgumentError} It connects in a way that pg does not know: by a `socket` of the user's, or a path
 *   that is not named as PostgreSQL names it.
 */
export function configsOfPostgresJs(
  instance: PostgresJsInstance,
  applicationName: string,
): readonly PgHostConfig[] {
  const options = instance.options as PostgresJsOptions
  if (options.socket) throw invalid('connects by a "socket" of yours; pass an address')
  const encryptions = encryptionsOf(options.ssl)
  const places = placesOf(options)
  const many = places.length * encryptions.length > 1
  return places.flatMap((place) =>
    encryptions.map((ssl) => ({
      ...place,
      database: options.database,
      user: options.user,
      ...(options.pass ? { password: options.pass } : {}),
      ssl,
      ...(typeof options.connection?.options === 'string' ? { options: options.connection.options } : {}),
      application_name: applicationName,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_DELAY_MS,
      connectionTimeoutMillis: many ? CONNECT_TIMEOUT_OF_MANY_MS : CONNECT_TIMEOUT_MS,
    })),
  )
}

function placesOf({ path, host, port }: PostgresJsOptions): readonly { host: string; port: number }[] {
  if (path) {
    const [, folder, number] = /^(.+)\/\.s\.PGSQL\.(\d+)$/.exec(path) ?? []
    if (folder === undefined)
      throw invalid('connects to a socket that is not called ".s.PGSQL.<port>"; pass an address')
    return [{ host: folder, port: Number(number) }]
  }
  return host.map((name, index) => ({ host: name, port: port[index] ?? port[0] ?? 5432 }))
}

/** The ways to try in order. With `prefer` a server without encryption is taken too. */
function encryptionsOf(ssl: PostgresJsOptions['ssl']): readonly (boolean | ConnectionOptions)[] {
  if (typeof ssl === 'object') return [ssl]
  switch (ssl) {
    case undefined:
    case false:
      return [false]
    case 'prefer':
      return [UNVERIFIED, false]
    case 'require':
    case 'allow':
      return [UNVERIFIED]
    default:
      return [true]
  }
}

function invalid(problem: string): InvalidArgumentError {
  return new InvalidArgumentError({ field: 'database', problem: `is a postgres.js instance that ${problem}` })
}

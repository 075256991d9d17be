import { InvalidArgumentError } from '../base/errors.ts'
import type { PgPool } from './pg-connection.ts'
import type { PgliteInstance } from './pglite-connection.ts'
import { isPostgresJsInstance, type PostgresJsInstance } from './postgres-js.ts'
import { hasMethods, isThing } from './shape.ts'

/** Where the app's database is, as told by what was passed as `database`. */
export type DatabaseSource =
  | { readonly kind: 'pg'; readonly url: string }
  | { readonly kind: 'pg'; readonly pool: PgPool }
  | { readonly kind: 'postgres-js'; readonly postgresJs: PostgresJsInstance }
  | { readonly kind: 'pglite'; readonly folder: string | undefined }
  | { readonly kind: 'pglite'; readonly instance: PgliteInstance }

const EXAMPLES =
  'postgres://user:password@host:5432/name (special characters of the password percent-encoded), ' +
  'pglite:./folder, pglite:memory:, a pg Pool, a postgres.js instance, or a PGlite instance'

const PG_URL = /^(postgres(?:ql)?):\/\/([^/?#]*)(\/[^?#]*)?(\?[^#]*)?$/

/**
 * Tells what `database` is: an address (`postgres:`, `postgresql:`, `pglite:`), a pg Pool, a
 * postgres.js instance, or a PGlite instance.
 *
 * @throws {InvalidArgumentError} Something else, or an address that cannot be right. Never repeats the address.
 */
export function readDatabase(database: unknown): DatabaseSource {
  if (typeof database === 'string') return readUrl(database.trim())
  if (isPgPool(database)) return { kind: 'pg', pool: database }
  if (isPostgresJsInstance(database)) return { kind: 'postgres-js', postgresJs: database }
  if (isPgliteInstance(database)) return { kind: 'pglite', instance: database }
  throw invalid('is none of these')
}

/**
 * Splits an address with several hosts into one address for each, which pg itself does not take. Drops
 * `target_session_attrs`: of several hosts, the one that accepts writes is always looked for.
 *
 * @throws {InvalidArgumentError} It is not a valid address. Never repeats the address.
 */
export function splitHosts(url: string): readonly string[] {
  const [, scheme, authority = '', path = '', query = ''] = PG_URL.exec(url) ?? []
  if (scheme === undefined) throw invalid('is not a valid address')
  const at = authority.lastIndexOf('@')
  const credentials = authority.slice(0, at + 1)
  const parameters = new URLSearchParams(query)
  if (parameters.get('host')?.includes(','))
    throw invalid('has to list its hosts before the name of the database')
  parameters.delete('target_session_attrs')
  const rest = parameters.size === 0 ? path : `${path || '/'}?${parameters.toString()}`
  return authority
    .slice(at + 1)
    .split(',')
    .map((host) => checkUrl(`${scheme}://${credentials}${host}${rest}`, `${credentials}${path}`))
}

/** True for a `Pool` of pg, or what looks like one. */
export function isPgPool(value: unknown): value is PgPool {
  return isThing(value) && hasMethods(value, ['connect', 'query']) && typeof value['totalCount'] === 'number'
}

/** True for an instance of PGlite, as opposed to its transactions. */
export function isPgliteInstance(value: unknown): value is PgliteInstance {
  return isThing(value) && hasMethods(value, ['query', 'exec', 'transaction', 'listen', 'close'])
}

function readUrl(url: string): DatabaseSource {
  if (url.startsWith('pglite:')) {
    const folder = url.slice('pglite:'.length).replace(/^\/\/(?=.)/, '')
    if (folder === '') throw invalid('names no folder after "pglite:"')
    return { kind: 'pglite', folder: folder === 'memory:' || folder === 'memory' ? undefined : folder }
  }
  splitHosts(url)
  return { kind: 'pg', url }
}

function checkUrl(url: string, encoded: string): string {
  try {
    decodeURIComponent(encoded)
    // pg allows an empty host (a socket, or one named by `host=`), the URL standard with credentials does not.
    void new URL(url.replace(/@(?=\/|$)/, '@localhost'))
  } catch {
    // What URL throws holds the address, and with it the password: it must not become a cause.
    throw invalid('is not a valid address')
  }
  return url
}

function invalid(problem: string): InvalidArgumentError {
  return new InvalidArgumentError({ field: 'database', problem: `${problem}; pass ${EXAMPLES}` })
}

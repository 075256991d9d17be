import { EventEmitter } from 'node:events'
import pg from 'pg'
import { sqlStateOf } from '../driver/postgres-error.ts'

/** What pg knows of the session of a client. */
interface PgSession extends EventEmitter {
  /** Texts of the prepared statements that the server has, by their names. */
  readonly parsedStatements: Record<string, string>
}

/** A prepared statement is gone, exists already, or no longer fits its tables: run it without its name. */
const STALE = new Set(['26000', '42P05', '0A000'])
const staleClients = new WeakSet<object>()
const watchedSessions = new WeakSet<PgSession>()

/**
 * True if statements may be prepared on `client`. From then on it is seen when the session forgets them (`discard all`,
 * `deallocate`), which pg itself does not notice: it would name statements that are gone.
 */
export function mayPrepare(client: object): boolean {
  if (staleClients.has(client)) return false
  const { connection } = client as { readonly connection?: unknown }
  if (!isPgSession(connection)) return false
  if (watchedSessions.has(connection)) return true
  watchedSessions.add(connection)
  connection.on('commandComplete', ({ text }: { readonly text?: string }) => {
    if (text?.startsWith('DISCARD ALL') || text?.startsWith('DEALLOCATE')) forgetStatements(connection)
  })
  return true
}

/** True for the error of a prepared statement that cannot be used; `client` is not asked by name any more. */
export function isStale(client: object, error: unknown): boolean {
  if (!STALE.has(sqlStateOf(error) ?? '')) return false
  staleClients.add(client)
  return true
}

/** Where a client of pg is connected to, or would be. */
export interface PgAddress {
  readonly host: string
  readonly port: number
  readonly database: string | undefined
}

/** The address that pg makes of `config`, by its own rules: an address, single options, variables of the environment. */
export function addressOf(config: pg.ClientConfig): PgAddress {
  const { host, port, database } = new pg.Client(config)
  return { host, port, database }
}

/** True if `client` is one of pg that is connected to one of `addresses`. */
export function isConnectedTo(client: object, addresses: readonly PgAddress[]): boolean {
  const { host, port, database } = client as Partial<PgAddress>
  return addresses.some((one) => one.host === host && one.port === port && one.database === database)
}

function isPgSession(connection: unknown): connection is PgSession {
  return (
    connection instanceof EventEmitter &&
    typeof (connection as Partial<PgSession>).parsedStatements === 'object'
  )
}

function forgetStatements(session: PgSession): void {
  for (const name of Object.keys(session.parsedStatements)) {
    if (name.startsWith('hf_')) delete session.parsedStatements[name]
  }
}

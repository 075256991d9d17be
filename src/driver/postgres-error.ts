import {
  DatabaseError,
  HoldfastError,
  InvalidArgumentError,
  LockLostError,
  OutcomeUnknownError,
  SchemaVersionError,
  TransactionAbortedError,
  UnavailableError,
  UnknownJobError,
} from '../base/errors.ts'
import { truncateUtf8 } from '../base/json.ts'
import { redactText } from '../base/redact.ts'

/** What is known of the statement that failed. */
export interface FailedStatement {
  readonly operation: string
  /** True once any part of the statement may have reached the server. */
  readonly sent: boolean
  /** True if a repetition does no harm: reads, and anything inside a transaction that cannot commit any more. */
  readonly repeatable: boolean
  /** The schema whose tables the statement needs. */
  readonly schema?: string | undefined
}

/** The server ended or refused the connection; 25006: it is a standby now, and the primary is elsewhere. */
const CONNECTION_LOST = new Set(['57P01', '57P02', '57P03', '57P05', '25P03', '25P04', '53300', '25006'])
/** SQLSTATEs that come before anything was run, so that nothing can have changed. */
const NOTHING_RUN = new Set(['57P03', '53300', '25006', '08001', '08004'])
/** Of our own statements, a missing table, schema, function or column is a migration that has not run. */
const OBJECT_MISSING = new Set(['42P01', '3F000', '42883', '42703'])
const RETRYABLE = new Set(['40001', '40P01', '55P03'])
/** Classes whose messages name objects and settings, never values. */
const SAFE_DETAIL = /^(?:28|3D|3F|42|53|54|55|58)/
/** No class starts with E, but codes of Node do: EPIPE; and of those with P only P0, while Prisma has P2010. */
const SQLSTATE = /^(?:P0|[0-9A-DF-OQ-Z][0-9A-Z])[0-9A-Z]{3}$/

/**
 * Turns whatever a driver threw into an error of ours: the one place where SQLSTATEs are read. `cause` is
 * kept; errors of ours pass through.
 *
 * A lost connection is `OutcomeUnknownError` if a write that must not be repeated had been sent, and
 * `UnavailableError` otherwise.
 */
export function mapError(error: unknown, statement: FailedStatement): HoldfastError {
  if (error instanceof HoldfastError) return error
  const options = { cause: error }
  const said = findPostgresError(error)
  const sqlState = said?.sqlState
  if (said === undefined || sqlState === undefined || isConnectionLost(sqlState)) {
    const harmless = !statement.sent || statement.repeatable || NOTHING_RUN.has(sqlState ?? '')
    const facts = { operation: statement.operation }
    return harmless ? new UnavailableError(facts, options) : new OutcomeUnknownError(facts, options)
  }
  if (sqlState === '25P02') return new TransactionAbortedError(options)
  if (sqlState.startsWith('HF')) {
    const own = ownError(said, options)
    if (own) return own
  }
  if (OBJECT_MISSING.has(sqlState) && statement.schema !== undefined) {
    return new SchemaVersionError(
      { found: undefined, expected: undefined, schema: statement.schema },
      options,
    )
  }
  const detail = SAFE_DETAIL.test(sqlState) ? truncateUtf8(redactText(said.message), 300) : undefined
  return new DatabaseError({ sqlState, operation: statement.operation, detail }, options)
}

/** True if the same transaction may succeed when run again: serialization failure, deadlock, lock timeout. */
export function isRetryable(error: unknown): boolean {
  const sqlState = error instanceof DatabaseError ? error.sqlState : sqlStateOf(error)
  return sqlState !== undefined && RETRYABLE.has(sqlState)
}

/** True if the connection that gave `error` is of no more use. An error without SQLSTATE is the driver's own. */
export function isConnectionError(error: unknown): boolean {
  const sqlState = sqlStateOf(error)
  return sqlState === undefined || isConnectionLost(sqlState)
}

/** The SQLSTATE of what a driver threw; `undefined` if the error is not PostgreSQL's. */
export function sqlStateOf(error: unknown): string | undefined {
  return findPostgresError(error)?.sqlState
}

/** What PostgreSQL said. */
export interface PostgresError {
  readonly sqlState: string
  readonly message: string
  readonly detail: unknown
}

/**
 * Where the error of the driver is inside that of an ORM: `cause` (Drizzle, MikroORM, Prisma's adapter),
 * `driverError` (TypeORM), `original` (Sequelize), `meta` and `driverAdapterError` (Prisma).
 */
const WRAPPINGS = ['cause', 'driverError', 'original', 'meta', 'driverAdapterError']
const DEEPEST_WRAPPING = 5

/** Finds PostgreSQL's own error in what a driver or ORM threw; `undefined` if there is none. */
export function findPostgresError(error: unknown, depth = 0): PostgresError | undefined {
  if (error instanceof HoldfastError && !(error instanceof DatabaseError)) return undefined
  // Prisma's adapter keeps the code apart, since its own is for people: P2010.
  const code = [propertyOf(error, 'originalCode'), propertyOf(error, 'code')].find(isSqlState)
  if (code !== undefined) {
    const message = propertyOf(error, 'originalMessage') ?? propertyOf(error, 'message')
    return {
      sqlState: code,
      message: typeof message === 'string' ? message : '',
      detail: propertyOf(error, 'detail'),
    }
  }
  if (depth === DEEPEST_WRAPPING) return undefined
  for (const name of WRAPPINGS) {
    const found = findPostgresError(propertyOf(error, name), depth + 1)
    if (found) return found
  }
  return undefined
}

function isSqlState(code: unknown): code is string {
  return typeof code === 'string' && SQLSTATE.test(code)
}

function isConnectionLost(sqlState: string): boolean {
  return sqlState.startsWith('08') || CONNECTION_LOST.has(sqlState)
}

/**
 * Errors that our own SQL functions raise. HF001: `message` is `field: problem`. HF002: `detail` is the job's name. HF010:
 * `detail` is JSON of resource and token.
 */
function ownError(said: PostgresError, options: ErrorOptions): HoldfastError | undefined {
  const { sqlState, message, detail } = said
  if (sqlState === 'HF001') {
    const end = message.indexOf(': ')
    const field = end < 0 ? 'argument' : message.slice(0, end)
    return new InvalidArgumentError({ field, problem: end < 0 ? message : message.slice(end + 2) }, options)
  }
  if (sqlState === 'HF002') return new UnknownJobError({ jobName: String(detail) }, options)
  if (sqlState === 'HF010') return new LockLostError({ ...lockOf(detail), why: 'gone' }, options)
  return undefined
}

/** Which lock `assert_lock` refused. Not every ORM passes the detail on. */
function lockOf(detail: unknown): { readonly resource: string; readonly fencingToken: bigint | undefined } {
  if (typeof detail !== 'string') return { resource: '', fencingToken: undefined }
  const { resource, token } = JSON.parse(detail) as {
    readonly resource: string
    readonly token: string | null
  }
  return { resource, fencingToken: token === null ? undefined : BigInt(token) }
}

function propertyOf(error: unknown, name: string): unknown {
  if (typeof error !== 'object' || error === null) return undefined
  try {
    return Reflect.get(error, name)
  } catch {
    // A getter or proxy that throws has nothing to say; the error itself stays the cause.
    return undefined
  }
}

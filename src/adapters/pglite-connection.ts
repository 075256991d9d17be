import type { RawRow, StatementOptions, UserResult, WireValue } from '../driver/driver.ts'
import { mapError } from '../driver/postgres-error.ts'

/** The subset of a PGlite transaction that is used. */
export interface PgliteTransaction {
  query(text: string, values: unknown[], options?: PgliteQueryOptions): Promise<PgliteResult>
  readonly closed: boolean
}

/** The subset of a PGlite instance that is used. */
export interface PgliteInstance {
  readonly waitReady: Promise<void>
  query(text: string, values: unknown[], options?: PgliteQueryOptions): Promise<PgliteResult>
  transaction<T>(fn: (tx: PgliteTransaction) => Promise<T>): Promise<T>
  listen(channel: string, callback: (payload: string) => void): Promise<() => Promise<void>>
  close(): Promise<void>
}

interface PgliteResult {
  readonly rows: unknown[]
  readonly affectedRows?: number
}

interface PgliteQueryOptions {
  readonly parsers: Record<number, (value: string) => unknown>
}

/**
 * Types whose columns PGlite would turn into JavaScript values: bool, bytea, int8, int2, int4, text, oid, json,
 * float4, float8, varchar, date, timestamp, timestamptz, numeric, jsonb, and arrays of them.
 */
const PARSED_TYPES = [
  16, 17, 20, 21, 23, 25, 26, 114, 700, 701, 1042, 1043, 1082, 1114, 1184, 1700, 3802, 199, 1000, 1001, 1005,
  1007, 1009, 1016, 1021, 1022, 1028, 1015, 1115, 1182, 1185, 1231, 3807,
] as const

/** Columns as PostgreSQL writes them, so that the parsers of an instance do not matter. */
const RAW: PgliteQueryOptions = {
  parsers: Object.fromEntries(PARSED_TYPES.map((type) => [type, (value: string) => value])),
}

/** Sends one statement and gives its rows as text. Throws errors of ours. */
export async function queryPglite(
  target: Pick<PgliteTransaction, 'query'>,
  text: string,
  values: readonly WireValue[],
  options: StatementOptions,
): Promise<readonly RawRow[]> {
  const { operation = 'statement', repeatable = false, schema } = options
  try {
    return (await target.query(text, [...values], RAW)).rows as RawRow[]
  } catch (error) {
    // PGlite hangs the parameters on its errors, and they are payload.
    if (typeof error === 'object' && error !== null) Reflect.deleteProperty(error, 'params')
    throw mapError(error, { operation, sent: true, repeatable, schema })
  }
}

/** Runs a statement of the user's own, with the instance's own conversions. Throws what PGlite throws. */
export async function queryPgliteAsUser(
  target: Pick<PgliteTransaction, 'query'>,
  text: string,
  values: readonly unknown[],
): Promise<UserResult> {
  const { rows, affectedRows } = await target.query(text, [...values])
  return { rows, rowCount: Math.max(rows.length, affectedRows ?? 0) }
}

import { createHash } from 'node:crypto'
import type { Queryable, RawRow, StatementOptions, WireValue } from './driver.ts'
import { qualifyFunctions } from './qualify.ts'
import { type Objects, objects, type Placeholder, render, type SqlFragment } from './sql.ts'
import { decoderOf, encoderOf } from './wire.ts'

/** What a parameter of a PostgreSQL type takes in TypeScript. */
interface ParamTypes {
  text: string
  bool: boolean
  int2: number
  int4: number
  /** Text is for ids, which leave the library as text. */
  int8: bigint | string
  float8: number
  /** A point in time; milliseconds are all a Date holds. */
  instant: Date
  /** JSON text, made by `base/json.ts`. Stored digit for digit. */
  json: string
  bytes: Uint8Array
  'text[]': readonly (string | null)[]
  'int2[]': readonly number[]
  'int4[]': readonly number[]
  'int8[]': readonly (bigint | string)[]
}

/** What a column of a PostgreSQL type becomes in TypeScript. */
interface ColumnTypes {
  text: string
  bool: boolean
  int4: number
  int8: bigint
  float8: number
  /** Selected as `x::text`. The members stay text, `NULL` among them. */
  'int8[]': readonly string[]
  /** Selected as `(extract(epoch from x) * 1000)::int8`: no date style or driver can change it. */
  instant: Date
  /** Selected as `x::text` and parsed here, so that every driver gives the same value. */
  json: unknown
  /** Selected as `encode(x, 'hex')`: no `bytea_output` or driver can change it. */
  bytes: Uint8Array
}

type Nullable<T extends string> = T | `${T}?`
export type ParamType = Nullable<keyof ParamTypes>
export type ColumnType = Nullable<keyof ColumnTypes>

type Value<Types, T> = T extends `${infer Base}?`
  ? Base extends keyof Types
    ? Types[Base] | null
    : never
  : T extends keyof Types
    ? Types[T]
    : never

type ParamValues<P extends Record<string, ParamType>> = { readonly [K in keyof P]: Value<ParamTypes, P[K]> }
type RowOf<C extends Record<string, ColumnType>> = { readonly [K in keyof C]: Value<ColumnTypes, C[K]> }

export interface OperationSpec<P extends Record<string, ParamType>, C extends Record<string, ColumnType>> {
  /** Sent as a comment with the statement, and as its name where it is prepared. */
  readonly name: string
  readonly params: P
  /** Columns in camel case; the statement gives them in snake case, in any order. */
  readonly columns: C
  readonly text: (tables: Objects, params: { readonly [K in keyof P]: Placeholder }) => SqlFragment
  /** Client-side deadline in milliseconds. Default: 30,000. */
  readonly deadlineMs?: number
  /**
   * True if a repetition after a lost reply does no harm, so that a broken connection is not an unknown
   * outcome but an ordinary failure. Reads are.
   */
  readonly repeatable?: boolean
}

/** One statement with its types: the only way SQL is sent at run time. */
export interface Operation<P extends Record<string, ParamType>, C extends Record<string, ColumnType>>
  extends Pick<OperationSpec<P, C>, 'name' | 'params' | 'columns'> {
  /** The statement for `schema`, made once for each. */
  statement(schema: string): Statement
  /** The parameters as they travel, in their order. */
  encode(params: ParamValues<P>): readonly WireValue[]
  decode(row: RawRow): RowOf<C>
}

export interface Statement {
  readonly text: string
  readonly name: string
  /** How it is sent where it is prepared, and where nothing is. */
  readonly named: StatementOptions
  readonly unnamed: StatementOptions
}

// biome-ignore lint: the widest operation there is
export type Row<O> = O extends Operation<infer _P, infer C> ? RowOf<C> : never
export type Params<O> = O extends Operation<infer P, infer _C> ? ParamValues<P> : never

/** Where operations of ours run: a connection and the schema our tables are in. */
export interface Database {
  readonly queryable: Queryable
  readonly schema: string
  /** False behind a transaction pooler: statements then go unnamed. */
  readonly prepare: boolean
}

const DEFAULT_DEADLINE_MS = 30_000

export function operation<
  const P extends Record<string, ParamType>,
  const C extends Record<string, ColumnType>,
>(spec: OperationSpec<P, C>): Operation<P, C> {
  const names = Object.keys(spec.params)
  const placeholders = Object.fromEntries(
    names.map((param) => [param, { kind: 'placeholder', param }]),
  ) as unknown as { readonly [K in keyof P]: Placeholder }
  const fragment = spec.text(objects, placeholders)
  const rendered = new Map<string, Statement>()
  const encoders = names.map((param) => [param, encoderOf(spec.params[param] as ParamType)] as const)
  const decoders = Object.keys(spec.columns).map(
    (column) => [column, snakeCase(column), decoderOf(spec.columns[column] as ColumnType)] as const,
  )

  return {
    name: spec.name,
    params: spec.params,
    columns: spec.columns,
    statement(schema) {
      const known = rendered.get(schema)
      if (known) return known
      const body = qualifyFunctions(
        render(fragment, schema, (param) =>
          castPlaceholder(names.indexOf(param) + 1, spec.params[param] as ParamType),
        ),
      )
      const text = `/* holdfast:${spec.name} */ ${body}`
      const name = preparedName(spec.name, text)
      const unnamed = {
        deadlineMs: spec.deadlineMs ?? DEFAULT_DEADLINE_MS,
        operation: spec.name,
        repeatable: spec.repeatable ?? false,
        schema,
      }
      const made = { text, name, named: { ...unnamed, name }, unnamed }
      rendered.set(schema, made)
      return made
    },
    encode(params) {
      return encoders.map(([param, encode]) => encode((params as Record<string, unknown>)[param]))
    },
    decode(row) {
      const decoded: Record<string, unknown> = {}
      for (const [column, name, decode] of decoders) decoded[column] = decode(row[name])
      return decoded as RowOf<C>
    },
  }
}

/** What a call may change of its operation. */
export type RunOptions = Pick<StatementOptions, 'deadlineMs' | 'repeatable'>

/** Runs `operation` and gives its rows, decoded by the declared column types. */
export async function run<P extends Record<string, ParamType>, C extends Record<string, ColumnType>>(
  db: Database,
  op: Operation<P, C>,
  params: ParamValues<P>,
  options?: RunOptions,
): Promise<readonly RowOf<C>[]> {
  const { text, named, unnamed } = op.statement(db.schema)
  const declared = db.prepare ? named : unnamed
  const sent = options === undefined ? declared : { ...declared, ...options }
  const rows = await db.queryable.query(text, op.encode(params), sent)
  return rows.map((row) => op.decode(row))
}

/** {@link run} for a statement that gives exactly one row. */
export async function runOne<P extends Record<string, ParamType>, C extends Record<string, ColumnType>>(
  db: Database,
  op: Operation<P, C>,
  params: ParamValues<P>,
  options?: RunOptions,
): Promise<RowOf<C>> {
  const [row] = await run(db, op, params, options)
  if (row === undefined)
    throw new Error(`holdfast: statement ${op.name} gave no row; this is a fault of ours`)
  return row
}

/**
 * Each value is sent as text and cast in the statement: postgres.js would encode a string
 * given to `$1::json` a second time, and drivers differ in arrays and dates.
 */
function castPlaceholder(position: number, type: ParamType): string {
  const base = type.replace('?', '')
  if (base === 'text') return `$${position}::text`
  if (base === 'instant') return `to_timestamp($${position}::text::float8 / 1000)`
  return `$${position}::text::${base.replace('bytes', 'bytea')}`
}

function snakeCase(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
}

/**
 * Prepared statements are named per connection, and callers' connections are used too: another schema's, or another
 * release's in the same process, must not meet there under one name.
 */
function preparedName(operation: string, text: string): string {
  return `hf_${operation}_${createHash('sha256').update(text).digest('hex').slice(0, 8)}`
}

import { createHash } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { channelOf, hintChannelOf } from '../base/channel.ts'
import { SchemaVersionError } from '../base/errors.ts'
import { packageFile } from '../base/package-files.ts'
import type { Driver, Queryable } from '../driver/driver.ts'
import { quoteIdentifier, quoteLiteral } from '../driver/identifier.ts'

const FOLDER = packageFile('sql/migrations/')

/** A numbered file of `sql/migrations`. */
export interface Migration {
  readonly version: number
  readonly name: string
  readonly text: string
  /** True if releases that do not know it must not go on. Said in the file's first line. */
  readonly breaking: boolean
}

/** What a call of `migrate` did, and how the schema is now. */
export interface MigrateResult {
  /** Names of the migrations that this call applied; empty when the schema was up to date. */
  readonly applied: readonly string[]
  readonly version: number
}

/**
 * Brings the schema to the newest version. Any number of processes may do this at once, from any state: each
 * migration is one transaction under one lock, in which the state is read again, so it is applied and recorded
 * exactly once. A crash leaves the state before or after a migration; calling again goes on from there.
 *
 * When the schema is up to date this is one read without locks. A schema newer than this release is left alone.
 */
export async function migrate(driver: Driver, schema: string): Promise<MigrateResult> {
  const migrations = await readMigrations()
  const newest = migrations.at(-1)?.version ?? 0
  const applied: string[] = []
  let version = (await readVersion(driver, schema))?.version ?? 0
  while (version < newest) {
    version = await driver.transaction(async (tx) => await applyNext(tx, schema, migrations, applied))
  }
  return { applied, version }
}

async function applyNext(
  tx: Queryable,
  schema: string,
  migrations: readonly Migration[],
  applied: string[],
): Promise<number> {
  // Waiting for another process, and what it takes to change a large table, is no fault: time limits of the role
  // are meant for other statements.
  await tx.query('set local statement_timeout = 0', [])
  await tx.query('set local lock_timeout = 0', [])
  await tx.query('select pg_catalog.pg_advisory_xact_lock($1::text::int8)', [lockKeyOf(schema)])
  const version = (await readVersion(tx, schema))?.version ?? 0
  const next = migrations.find((migration) => migration.version > version)
  if (next === undefined) return version
  if (version === 0) {
    // Asked first: "if not exists" needs the right to make schemas even for one that is there.
    const [found] = await tx.query(
      `select exists (select from pg_catalog.pg_namespace where nspname = $1::text)::text as is_there`,
      [schema],
    )
    if (found?.['is_there'] !== 'true') await tx.query(`create schema ${quoteIdentifier(schema)}`, [])
    await tx.query(
      `create table ${quoteIdentifier(schema)}.migration (
        version integer primary key, name text not null, breaking boolean not null,
        applied_at timestamptz not null default pg_catalog.clock_timestamp())`,
      [],
    )
  }
  // Names that the files leave unqualified are PostgreSQL's own, whatever the role's search path is.
  await tx.query('set local search_path = pg_catalog, pg_temp', [])
  for (const statement of splitStatements(renderMigration(next.text, schema))) await tx.query(statement, [])
  await tx.query(
    `insert into ${quoteIdentifier(schema)}.migration (version, name, breaking) values ($1::text::int4, $2::text, $3::text::bool)`,
    [String(next.version), next.name, String(next.breaking)],
  )
  applied.push(next.name)
  return next.version
}

interface SchemaVersion {
  readonly version: number
  readonly breaking: boolean
}

/** What version the schema has, and whether a migration newer than `known` forbids to go on. */
export async function readVersion(
  queryable: Queryable,
  schema: string,
  known = 0,
): Promise<SchemaVersion | undefined> {
  // Not by to_regclass: a session that found nothing under a name may keep that to the end of its transaction.
  const [found] = await queryable.query(
    `select exists (select from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
       where n.nspname = $1::text and c.relname = 'migration')::text as is_there`,
    [schema],
    { repeatable: true, operation: 'read_version' },
  )
  return found?.['is_there'] === 'true' ? await readMigrated(queryable, schema, known) : undefined
}

async function readMigrated(queryable: Queryable, schema: string, known: number): Promise<SchemaVersion> {
  const [row] = await queryable.query(
    `select coalesce(max(version), 0)::text as version, coalesce(bool_or(breaking and version > $1::text::int4), false)::text as breaking
     from ${quoteIdentifier(schema)}.migration`,
    [String(known)],
    { repeatable: true, operation: 'read_version', schema },
  )
  return { version: Number(row?.['version']), breaking: row?.['breaking'] === 'true' }
}

/**
 * Checks that this release can work with the schema as it is: not older than it needs, and, if newer, without
 * a migration that says it breaks older releases. One statement, since each worker asks every minute.
 *
 * @throws {SchemaVersionError} It cannot. Nothing was claimed or changed.
 */
export async function requireVersion(queryable: Queryable, schema: string): Promise<void> {
  const expected = (await readMigrations()).at(-1)?.version ?? 0
  const found = await readMigrated(queryable, schema, expected).catch((error: unknown) => {
    if (error instanceof SchemaVersionError) return undefined
    throw error
  })
  if (found === undefined || found.version < expected || found.breaking) {
    throw new SchemaVersionError({ schema, found: found?.version, expected })
  }
}

let cache: Promise<readonly Migration[]> | undefined

/** The migrations of this release, oldest first. */
export function readMigrations(): Promise<readonly Migration[]> {
  cache ??= (async () => {
    const files = (await readdir(FOLDER)).filter((file) => /^\d{4}-.+\.sql$/.test(file)).sort()
    return await Promise.all(
      files.map(async (file) => {
        const text = await readFile(new URL(file, FOLDER), 'utf8')
        const version = Number(file.slice(0, 4))
        return { version, name: file.slice(0, -4), text, breaking: text.startsWith('-- breaking') }
      }),
    )
  })()
  return cache
}

/**
 * Puts the schema's name and channels into a migration, in one pass: a schema may be named `:channel`. Literals
 * are good whatever `standard_conforming_strings` says.
 */
export function renderMigration(text: string, schema: string): string {
  return text.replace(
    /:schema_literal\b|':schema\.([\w$]+)'|:schema\b|:channel\b|:hint_channel\b/g,
    (found, object?: string) => {
      if (object !== undefined) return quoteLiteral(`${quoteIdentifier(schema)}.${quoteIdentifier(object)}`)
      if (found === ':schema') return quoteIdentifier(schema)
      if (found === ':channel') return quoteLiteral(channelOf(schema))
      return quoteLiteral(found === ':hint_channel' ? hintChannelOf(schema) : schema)
    },
  )
}

/**
 * Splits at semicolons that end a line outside `$function$` bodies: the drivers send one statement at a time.
 * The files are ours and keep to that form.
 */
export function splitStatements(text: string): readonly string[] {
  const statements: string[] = []
  let current = ''
  let inFunction = false
  for (const line of text.split('\n')) {
    if (!inFunction && line.startsWith('--')) continue
    if ((line.split('$function$').length - 1) % 2 === 1) inFunction = !inFunction
    current += `${line}\n`
    if (!inFunction && line.trimEnd().endsWith(';')) {
      statements.push(current)
      current = ''
    }
  }
  if (current.trim() !== '') statements.push(current)
  return statements
}

/** Advisory locks are one namespace per database: ours is set apart by a hash of a text that names us. */
function lockKeyOf(schema: string): string {
  return createHash('sha256').update(`holdfast migrate ${schema}`).digest().readBigInt64BE(0).toString()
}

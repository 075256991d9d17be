import fs from 'node:fs'
import { createDriver } from '../adapters/create-driver.ts'
import { readDatabase } from '../adapters/database-url.ts'
import type { AdminServices } from '../admin/services.ts'
import { schemaStatus } from '../admin/status.ts'
import type { App } from '../app/app.ts'
import { Coordination } from '../app/coordination.ts'
import { Transactions } from '../app/transactions.ts'
import { checkSchemaName } from '../base/check.ts'
import { SchemaVersionError } from '../base/errors.ts'
import { EventHub } from '../base/events.ts'
import { usageError } from './cli-error.ts'
import type { CommonArgs } from './command.ts'
import { findAppFile, loadApp } from './load-app.ts'

/** A database to work on, and the application it belongs to, if an app file told of one. */
export interface OpenDatabase extends AdminServices {
  readonly app: App | undefined
  /** Locks, keys, scripts and sequences of it. */
  readonly coordination: Coordination
  [Symbol.asyncDispose](): Promise<void>
}

export interface OpenOptions {
  /** True if an embedded database may be made where there is none. Default: false: a mistyped folder is refused. */
  readonly mayCreate?: boolean
  /** False if the schema may be missing or older. Default: true. */
  readonly needsSchema?: boolean
}

/**
 * Opens the database that the options name: that of `--database`, or that of the app file.
 *
 * @throws {CliError} Neither is given or found, or both are.
 * @throws {SchemaVersionError} The schema is not one that this release can read.
 */
export async function openDatabase(args: CommonArgs, options: OpenOptions = {}): Promise<OpenDatabase> {
  const opened = args.database === undefined ? await ofApp(args) : ofAddress(args, args.database, options)
  try {
    if (options.needsSchema !== false) await requireSchema(opened)
  } catch (error) {
    await opened[Symbol.asyncDispose]()
    throw error
  }
  return opened
}

/**
 * Loads the app that the options name.
 *
 * @throws {CliError} There is no app file, or `--database` was given.
 */
export async function openApp(args: CommonArgs): Promise<App> {
  refuseAddressOptions(args)
  const file = findAppFile(args.app)
  if (file === undefined)
    throw usageError('no app file here (app.ts, app.js); name one: holdfast <command> path/to/app.ts')
  return await loadApp(file)
}

async function ofApp(args: CommonArgs): Promise<OpenDatabase> {
  if (findAppFile(args.app) === undefined) {
    const address = process.env['DATABASE_URL']
    if (address !== undefined && address !== '') return ofAddress(args, address, {})
    throw usageError(
      'no app file here (app.ts, app.js) and no DATABASE_URL; name a file with --app, or pass --database URL',
    )
  }
  const app = await openApp(args)
  const { driver, database, coordination } = app.internals
  return {
    app,
    driver,
    database: { ...database, prepare: false },
    coordination,
    [Symbol.asyncDispose]: async () => await app.close(),
  }
}

function ofAddress(args: CommonArgs, address: string, options: OpenOptions): OpenDatabase {
  if (args.app !== undefined)
    throw usageError('--database and an app file exclude each other: the file says which database it uses')
  const schema = checkSchemaName('schema', args.schema ?? 'holdfast')
  const source = readDatabase(address)
  if (
    'folder' in source &&
    source.folder !== undefined &&
    !options.mayCreate &&
    !fs.existsSync(source.folder)
  )
    throw usageError(
      `there is no database folder "${source.folder}"; check the path, or make it with "holdfast migrate"`,
    )
  const driver = createDriver(address, { applicationName: 'holdfast command', maxConnections: 2 })
  const database = { queryable: driver, schema, prepare: false }
  const transactions = new Transactions(driver, schema)
  const events = new EventHub()
  const coordination = new Coordination({ driver, database, transactions, events, pooler: false })
  return {
    app: undefined,
    driver,
    database,
    coordination,
    async [Symbol.asyncDispose]() {
      await coordination.close()
      await driver.close()
    },
  }
}

function refuseAddressOptions(args: CommonArgs): void {
  if (args.database !== undefined)
    throw usageError('this needs an app file, and --database cannot stand for one; name the file')
  if (args.schema !== undefined)
    throw usageError('--schema goes with --database; an app file says which schema it uses')
}

async function requireSchema({ database }: OpenDatabase): Promise<void> {
  const { state, version, expected, name } = await schemaStatus(database)
  if (state === 'current' || state === 'newer') return
  throw new SchemaVersionError({ schema: name, found: version ?? undefined, expected })
}

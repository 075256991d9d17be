import { createHash, randomBytes } from 'node:crypto'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { PGlite } from '@electric-sql/pglite'
import { describe } from 'vitest'
import { createPgDriver } from '../../src/adapters/pg.ts'
import { createPgliteDriver } from '../../src/adapters/pglite.ts'
import type { Driver } from '../../src/driver/driver.ts'
import { createDatabase } from './database.ts'
import { migrateAll, migrationsText } from './migrated.ts'

/** An open, migrated database of one test, on whichever back end. */
export interface Backend {
  readonly kind: 'pg' | 'pglite'
  readonly driver: Driver
  /** Runs one statement beside the driver (on PGlite: on the same connection, between its transactions). */
  sql<R extends Record<string, unknown> = Record<string, unknown>>(
    text: string,
    params?: readonly unknown[],
  ): Promise<R[]>
  [Symbol.asyncDispose](): Promise<void>
}

export interface BackendSuite {
  readonly kind: 'pg' | 'pglite'
  open(): Promise<Backend>
}

/** False where another version of the server is tested than the newest: PGlite is the same beside each. */
export const testsEmbedded = process.env['HOLDFAST_POSTGRES'] === undefined

/**
 * Runs the same tests on PostgreSQL and, beside its newest version, on PGlite.
 *
 * @example
 * describeEachBackend('enqueue', ({ open }) => {
 *   it('stores the job', async () => {
 *     await using backend = await open()
 *   })
 * })
 */
export function describeEachBackend(name: string, define: (suite: BackendSuite) => void): void {
  describe(`${name} (PostgreSQL)`, () => {
    define({ kind: 'pg', open: openPostgres })
  })
  if (!testsEmbedded) return
  describe(`${name} (PGlite)`, () => {
    define({ kind: 'pglite', open: openPglite })
  })
}

async function openPostgres(): Promise<Backend> {
  const database = await createDatabase()
  const driver = createPgDriver({ url: database.url })
  return {
    kind: 'pg',
    driver,
    sql: (text, params) => database.sql(text, params),
    async [Symbol.asyncDispose]() {
      await driver.close()
      await database.drop()
    },
  }
}

async function openPglite(): Promise<Backend> {
  const instance = await openMigratedPglite()
  const driver = createPgliteDriver({ instance })
  return {
    kind: 'pglite',
    driver,
    async sql<R extends Record<string, unknown>>(text: string, params: readonly unknown[] = []) {
      const { rows } = await instance.query<R>(text, [...params])
      return rows
    },
    async [Symbol.asyncDispose]() {
      await driver.close()
      await instance.close()
    },
  }
}

/** A migrated in-memory instance, loaded from a dump: 0.3 s rather than the 1.5 s of an empty one. */
export async function openMigratedPglite(): Promise<PGlite> {
  const dump = await ensureDump()
  const instance = new PGlite({ loadDataDir: new Blob([dump]) })
  await instance.waitReady
  return instance
}

let dumped: Promise<Buffer<ArrayBuffer>> | undefined

/** The dump is shared by all processes of this user, and made anew when a migration or PGlite changes. */
function ensureDump(): Promise<Buffer<ArrayBuffer>> {
  dumped ??= readDump()
  return dumped
}

async function readDump(): Promise<Buffer<ArrayBuffer>> {
  const { version } = JSON.parse(
    fs.readFileSync(new URL('../../node_modules/@electric-sql/pglite/package.json', import.meta.url), 'utf8'),
  ) as { version: string }
  const hash = createHash('sha256').update(`${version}\n${migrationsText()}`).digest('hex').slice(0, 16)
  const file = path.join(os.tmpdir(), `holdfast-pglite-${os.userInfo().uid}-${hash}.tar`)
  if (fs.existsSync(file)) return fs.readFileSync(file)

  const instance = new PGlite()
  // Dumping an instance that is not ready yet waits for ever.
  await instance.waitReady
  await migrateAll(createPgliteDriver({ instance }))
  const dump = Buffer.from(await (await instance.dumpDataDir('none')).arrayBuffer())
  await instance.close()
  // Renamed when whole: another process may be reading.
  const making = `${file}.${randomBytes(4).toString('hex')}`
  fs.writeFileSync(making, dump, { mode: 0o600 })
  fs.renameSync(making, file)
  removeOldDumps(file)
  return dump
}

/** Dumps of migrations as they were before an edit: 40 MB each. Those of the last hour may be another run's. */
function removeOldDumps(newest: string): void {
  const dir = path.dirname(newest)
  const prefix = `holdfast-pglite-${os.userInfo().uid}-`
  for (const name of fs.readdirSync(dir).filter((file) => file.startsWith(prefix))) {
    const { mtimeMs } = fs.statSync(path.join(dir, name), { throwIfNoEntry: false }) ?? {
      mtimeMs: Date.now(),
    }
    if (mtimeMs < Date.now() - 3_600_000) fs.rmSync(path.join(dir, name), { force: true })
  }
}

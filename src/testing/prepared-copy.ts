import { createHash, randomBytes } from 'node:crypto'
import fs from 'node:fs'
import { createRequire } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import { createPgliteDriver } from '../adapters/pglite.ts'
import { openPglite } from '../adapters/pglite-open.ts'
import { migrate, readMigrations } from '../migrations/migrate.ts'
import type { RawPglite } from './guarded-pglite.ts'

/** Copies that no test run has read for so long are removed. */
const MAX_AGE_MS = 7 * 24 * 3_600_000

/** PGlite, as far as copies need it. */
interface CopyablePglite extends RawPglite {
  dumpDataDir(compression: 'none'): Promise<Blob>
}

/**
 * Starts an embedded PostgreSQL in memory, with our schema. To make a new one takes seconds, and each file of tests is mostly a process
 * of its own; so a copy of the first one, some 40 MB, is kept in the system's folder for temporary files, and loaded by the next
 * processes in a fifth of the time. The copy is of this release's migrations and PGlite; it is read only from a folder that is nobody
 * else's. Without one, or with one that does not load, a new one is made.
 *
 * @throws {CompositionError} PGlite is not installed. @throws {UnavailableError} It could not start.
 */
export async function startPrepared(schema: string): Promise<RawPglite> {
  const file = await fileOf(schema)
  return (file === undefined ? undefined : await load(file)) ?? (await make(schema, file))
}

async function make(schema: string, file: string | undefined): Promise<RawPglite> {
  const { instance } = await openPglite({})
  const made = instance as CopyablePglite
  await migrate(createPgliteDriver({ instance: made }), schema)
  if (file !== undefined) await keep(made, file)
  return made
}

async function load(file: string): Promise<RawPglite | undefined> {
  try {
    const copy = new Blob([fs.readFileSync(file)])
    fs.utimesSync(file, new Date(), new Date())
    const { PGlite } = await import('@electric-sql/pglite')
    const loaded = new PGlite({ loadDataDir: copy })
    await loaded.waitReady
    return loaded as unknown as RawPglite
  } catch {
    // There is none yet, or it is of no use; what is wrong with PGlite itself is told by making one.
    return undefined
  }
}

/** Renamed when whole: another process may be reading. What fails here costs the next process a second, and nobody else anything. */
async function keep(made: CopyablePglite, file: string): Promise<void> {
  try {
    const copy = Buffer.from(await (await made.dumpDataDir('none')).arrayBuffer())
    const making = `${file}.${randomBytes(4).toString('hex')}`
    fs.writeFileSync(making, copy, { mode: 0o600, flag: 'wx' })
    fs.renameSync(making, file)
    for (const name of fs.readdirSync(path.dirname(file))) {
      const old = path.join(path.dirname(file), name)
      if (Date.now() - fs.statSync(old).mtimeMs > MAX_AGE_MS) fs.rmSync(old, { force: true })
    }
  } catch {
    // A full or read-only disk: tests run all the same.
  }
}

/** Nothing where no folder is surely one's own, or the version of PGlite cannot be told. */
async function fileOf(schema: string): Promise<string | undefined> {
  try {
    const uid = process.getuid?.()
    if (uid === undefined) return undefined
    const folder = path.join(os.tmpdir(), `holdfast-testing-${uid}`)
    fs.mkdirSync(folder, { recursive: true, mode: 0o700 })
    const { uid: owner, mode } = fs.lstatSync(folder)
    if (!fs.lstatSync(folder).isDirectory() || owner !== uid || (mode & 0o077) !== 0) return undefined
    const entry = createRequire(import.meta.url).resolve('@electric-sql/pglite')
    const { version } = JSON.parse(
      fs.readFileSync(path.join(path.dirname(entry), '../package.json'), 'utf8'),
    ) as { readonly version: string }
    const migrations = (await readMigrations()).map(({ text }) => text)
    const facts = JSON.stringify([version, schema, ...migrations])
    return path.join(folder, `${createHash('sha256').update(facts).digest('hex').slice(0, 32)}.tar`)
  } catch {
    return undefined
  }
}

import type { PGlite } from '@electric-sql/pglite'
import { Pool } from 'pg'
import type { Settings } from './settings.ts'

/** The least the shop's own code needs: a pool, a connection, or an open transaction of either database. */
export interface Sql {
  query(text: string, values?: unknown[]): Promise<{ readonly rows: readonly unknown[] }>
}

/** The shop's own connections. Holdfast uses them too: jobs live where the orders live. */
export type Database = Pool | PGlite

export async function connect(settings: Settings): Promise<Database> {
  if (settings.databaseUrl === undefined) {
    // Loaded only here: it is 27 MB, and no process that has a server wants it.
    const { PGlite } = await import('@electric-sql/pglite')
    return await PGlite.create(settings.embeddedDatabaseFolder)
  }
  const pool = new Pool({ connectionString: settings.databaseUrl, max: 12 })
  // Without a listener, an idle connection that breaks would end the process.
  pool.on('error', (error) => {
    // `end` resolves before its connections are closed: a server that stops just then still says so to them.
    if (!pool.ending) console.error(`a database connection broke: ${error.message}`)
  })
  return pool
}

export async function disconnect(database: Database): Promise<void> {
  if (database instanceof Pool) await database.end()
  else await database.close()
}

/** Runs `fn` in a transaction that the shop opened itself, without Holdfast's knowledge. */
export async function inTransaction<T>(database: Database, fn: (tx: Sql) => Promise<T>): Promise<T> {
  if (!(database instanceof Pool)) return await database.transaction((tx) => fn(tx))

  const client = await database.connect()
  try {
    await client.query('begin')
    const result = await fn(client)
    await client.query('commit')
    client.release()
    return result
  } catch (error) {
    // A connection whose rollback fails is of no use to the next one who asks the pool.
    await client.query('rollback').then(
      () => client.release(),
      (cause: Error) => client.release(cause),
    )
    throw error
  }
}

import { sql } from 'drizzle-orm'
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePglite } from 'drizzle-orm/pglite'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import postgres from 'postgres'
import { openMigratedPglite } from '../../support/backends.ts'
import { openPool } from '../../support/database.ts'
import { type OwnTransaction, onPostgres, type Subject } from './subject.ts'

/** What the transactions of Drizzle's drivers have in common. */
interface DrizzleTransaction {
  execute(query: ReturnType<typeof sql.raw>): PromiseLike<unknown>
  transaction<T>(fn: (tx: DrizzleTransaction) => Promise<T>): Promise<T>
}

const mistake = { says: /Drizzle database: .*db\.transaction/ }

export const drizzleOnPg = onPostgres({ name: 'Drizzle on pg' }, async ({ url }) => {
  const pool = openPool({ connectionString: url })
  const db = drizzlePg(pool)
  return {
    transaction: async (fn) => await db.transaction(async (tx) => await fn(ownOf(tx))),
    mistakes: { 'a database': { ...mistake, tx: db } },
    end: async () => await pool.end(),
  }
})

export const drizzleOnPostgresJs = onPostgres({ name: 'Drizzle on postgres.js' }, async ({ url }) => {
  const client = postgres(url, { max: 3, onnotice: () => {} })
  const db = drizzlePostgresJs(client)
  return {
    transaction: async (fn) => await db.transaction(async (tx) => await fn(ownOf(tx))),
    mistakes: { 'a database': { ...mistake, tx: db } },
    end: async () => await client.end(),
  }
})

export const drizzleOnPglite: Subject = {
  name: 'Drizzle on PGlite',
  async open() {
    const instance = await openMigratedPglite()
    const db = drizzlePglite(instance)
    return {
      database: instance,
      sql: async (text, params = []) =>
        (await instance.query<Record<string, unknown>>(text, [...params])).rows,
      transaction: async (fn) => await db.transaction(async (tx) => await fn(ownOf(tx))),
      mistakes: { 'a database': { ...mistake, tx: db } },
      close: async () => await instance.close(),
    }
  },
}

function ownOf(tx: DrizzleTransaction): OwnTransaction {
  return {
    tx,
    query: async (text) => await tx.execute(sql.raw(text)),
    savepoint: async (fn) =>
      await tx.transaction(async (inner: DrizzleTransaction) => await fn(ownOf(inner))),
  }
}

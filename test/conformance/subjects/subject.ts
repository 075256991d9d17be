import type { PGlite } from '@electric-sql/pglite'
import { createDatabase, type TestDatabase } from '../../support/database.ts'

/** A transaction of a test, by the means of one driver or ORM. */
export interface OwnTransaction {
  /** What is passed as `tx`. */
  readonly tx: unknown
  /** Runs a statement of the test's, as a user of the library would. */
  readonly query: (text: string) => Promise<unknown>
  /** Runs `fn` in a savepoint, and rolls back to it when `fn` throws. Default: by statements, as with any library. */
  readonly savepoint?: <T>(fn: (inner: OwnTransaction) => Promise<T>) => Promise<T>
}

/** A driver or ORM on a database of its own, as its documentation says to use it. */
export interface OpenSubject {
  /** What `defineApp` gets: the same database, by the library's own connections. */
  readonly database: string | PGlite
  readonly sql: (text: string, params?: readonly unknown[]) => Promise<Record<string, unknown>[]>
  /** Runs `fn` in a transaction; commits it, or rolls back what throws. */
  readonly transaction: <T>(fn: (own: OwnTransaction) => Promise<T>) => Promise<T>
  /** What a user may pass by mistake, and the word that the error has to say. */
  readonly mistakes: Readonly<Record<string, { readonly tx: unknown; readonly says: RegExp }>>
  readonly close: () => Promise<void>
}

export interface Subject {
  readonly name: string
  readonly open: () => Promise<OpenSubject>
}

/** A subject on PostgreSQL: `connect` makes everything but the database. */
export function onPostgres(
  facts: Omit<Subject, 'open'>,
  connect: (
    database: TestDatabase,
  ) => Promise<Pick<OpenSubject, 'transaction' | 'mistakes'> & { readonly end: () => Promise<unknown> }>,
): Subject {
  return {
    ...facts,
    async open() {
      const database = await createDatabase()
      const { end, ...subject } = await connect(database)
      return {
        ...subject,
        database: database.url,
        sql: async (text, params) => await database.sql(text, params),
        async close() {
          await end()
          await database.drop()
        },
      }
    },
  }
}

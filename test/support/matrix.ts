import { describe, inject } from 'vitest'
import { createDatabase, type DatabaseOptions, type TestDatabase } from './database.ts'

export interface MatrixServer {
  /** Major version: 14, 16 or 18. */
  readonly version: number
  createDatabase(options?: Omit<DatabaseOptions, 'server'>): Promise<TestDatabase>
}

/** Runs the tests of `define` on each PostgreSQL of the matrix. For files named `*.matrix.test.ts`. */
export function describeEachPostgres(name: string, define: (postgres: MatrixServer) => void): void {
  for (const [version, server] of Object.entries(inject('postgresUrls'))) {
    describe(`${name} (PostgreSQL ${version})`, () => {
      define({
        version: Number(version),
        createDatabase: (options) => createDatabase({ ...options, server }),
      })
    })
  }
}

import { InvalidArgumentError } from '../base/errors.ts'
import type { Driver } from '../driver/driver.ts'
import { readDatabase } from './database-url.ts'
import { createPgDriver, type PgDriverOptions } from './pg.ts'
import { createPgliteDriver } from './pglite.ts'

export type DriverOptions = Pick<PgDriverOptions, 'applicationName' | 'maxConnections' | 'pooler'>

/**
 * Makes the driver for what the user passed as `database`. Connects, or opens the folder, when first used.
 *
 * @throws {InvalidArgumentError} It is nothing that is known, or cannot be right.
 */
export function createDriver(database: unknown, options: DriverOptions = {}): Driver {
  const source = readDatabase(database)
  if ('url' in source) return createPgDriver({ ...options, url: source.url })
  if ('pool' in source) return createPgDriver({ ...options, pool: source.pool })
  if ('postgresJs' in source) return createPgDriver({ ...options, postgresJs: source.postgresJs })
  if (options.pooler) {
    throw new InvalidArgumentError({ field: 'pooler', problem: 'is for a PostgreSQL server, not for PGlite' })
  }
  return 'instance' in source
    ? createPgliteDriver({ instance: source.instance })
    : createPgliteDriver({ folder: source.folder })
}

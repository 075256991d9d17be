import fs from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Driver } from '../../src/driver/driver.ts'
import { migrate } from '../../src/migrations/migrate.ts'

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..')
export const testSchema = 'holdfast'

/** Brings the empty database of `driver` to the newest schema, and closes the driver. */
export async function migrateAll(driver: Driver): Promise<void> {
  try {
    await migrate(driver, testSchema)
  } finally {
    await driver.close()
  }
}

/** Changes with every edit of a migration or of what applies it, so that no stale template is used. */
export function migrationsText(): string {
  const sql = filesOf('sql/migrations')
  const code = filesOf('src/migrations').filter((file) => !file.endsWith('.test.ts'))
  return [...sql, ...code]
    .map((file) => `${file}\n${fs.readFileSync(path.join(root, file), 'utf8')}`)
    .join('\n')
}

function filesOf(folder: string): string[] {
  const names = fs.readdirSync(path.join(root, folder)).sort()
  return names.map((name) => path.posix.join(folder, name))
}

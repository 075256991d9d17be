import { listUserTables, readUserTable, type UserTable } from '../sql/read-user-tables.ts'
import type { TestApp } from '../test-app.ts'

/** The job whose handler is made to die, when all has come to its end. */
export interface ObservedJob {
  readonly id: string
  readonly state: string
  readonly result: unknown
}

/** What `observe` is given. */
export interface CrashWorld {
  /** The application, with its database as the run has left it. */
  readonly t: TestApp
  readonly job: ObservedJob
}

/** What is observed unless a test says what: the job's result, the jobs that were enqueued beside it, and the user's tables. */
export async function observeAll({ t, job }: CrashWorld): Promise<unknown> {
  const others = (await t.enqueued()).filter(({ id }) => id !== job.id)
  return {
    result: job.result,
    enqueued: others
      .map(({ name, queue, uniqueKey, input }) => ({ name, queue, uniqueKey, input }))
      .sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1)),
    tables: await readTables(t),
  }
}

async function readTables(t: TestApp): Promise<Readonly<Record<string, unknown>>> {
  const tables = await t.query<UserTable & Record<string, unknown>>(listUserTables, [
    t.app.composition.schema,
  ])
  const read: Record<string, unknown> = {}
  for (const table of tables) {
    const rows = await t.query<{ row: string }>(readUserTable(table))
    const name = table.schema === 'public' ? table.name : `${table.schema}.${table.name}`
    read[name] = rows.map(({ row }) => JSON.parse(row) as unknown)
  }
  return read
}

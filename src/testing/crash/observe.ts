import { run } from '../../driver/operation.ts'
import { idempotencyKeyOf } from '../../effects/idempotency-key.ts'
import type { FakeCall } from '../fake.ts'
import { listEffects } from '../sql/list-effects.ts'
import { listUserTables, readUserTable, type UserTable } from '../sql/read-user-tables.ts'
import type { TestApp } from '../test-app.ts'
import { toComparable } from './compare.ts'

/** The job whose handler is made to die, when all has come to its end. */
export interface ObservedJob {
  readonly id: string
  readonly state: string
  readonly result: unknown
}

/** A call of a resource. */
export interface ObservedCall extends FakeCall {
  readonly resource: string
}

/** What `observe` is given. */
export interface CrashWorld {
  /** The application, with its database as the run has left it. */
  readonly t: TestApp
  readonly job: ObservedJob
  /** What fakes were asked, over all attempts. */
  readonly calls: readonly ObservedCall[]
}

/**
 * What is observed unless a test says what: the job's result, the calls of resources, the jobs that were enqueued beside it, and the
 * user's tables. A call that carries the idempotency key of an effect counts once, as it does for the provider.
 */
export async function observeAll({ t, job, calls }: CrashWorld): Promise<unknown> {
  const others = (await t.enqueued()).filter(({ id }) => id !== job.id)
  return {
    result: job.result,
    calls: await countedCalls(t, calls),
    enqueued: sorted(others.map(({ name, queue, uniqueKey, input }) => ({ name, queue, uniqueKey, input }))),
    tables: await readTables(t),
  }
}

async function countedCalls(t: TestApp, calls: readonly ObservedCall[]): Promise<readonly unknown[]> {
  const keys = (await run(t.app.internals.database, listEffects, {})).map(({ tenant, name, key }) =>
    idempotencyKeyOf(tenant, name, key),
  )
  const seen = new Set<string>()
  const counted = calls.map(({ resource, method, args }) => toComparable({ resource, method, args }))
  return sorted(
    counted.filter((call) => {
      const text = JSON.stringify(call)
      const isRepeated = seen.has(text) && keys.some((key) => text.includes(key))
      seen.add(text)
      return !isRepeated
    }),
  )
}

function sorted<T>(items: readonly T[]): readonly T[] {
  return [...items].sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1))
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

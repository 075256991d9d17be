import type { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Statement } from '../../src/driver/operation.ts'
import { getEphemeralKey, getKey } from '../../src/keys/sql/get-key.ts'
import { setEphemeralKey, setEphemeralKeyIf, setKey, setKeyIf } from '../../src/keys/sql/set-key.ts'
import { acquireEphemeralLock, acquireLock } from '../../src/locks/sql/acquire-lock.ts'
import { findEphemeralLock, findLock } from '../../src/locks/sql/find-lock.ts'
import { releaseEphemeralLock, releaseLock } from '../../src/locks/sql/release-lock.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'

/**
 * What locks and keys send at each call, prepared on a connection of a pool while the tables were empty and kept since, as
 * the connections of an application are: over 100,000 rows it goes by the index, and not through the table.
 */

const ROWS = 100_000
const REPETITIONS = 7

interface Call {
  readonly statement: Statement
  readonly values: readonly (string | null)[]
}

const calls: readonly Call[] = [
  ...[acquireLock, acquireEphemeralLock].map((operation) => ({
    statement: operation.statement('holdfast'),
    values: operation.encode({ tenant: '', resource: 'r/7', owner: 'me', leaseMs: 30_000, waitMs: null }),
  })),
  ...[releaseLock, releaseEphemeralLock].map((operation) => ({
    statement: operation.statement('holdfast'),
    values: operation.encode({ tenant: '', resource: 'r/8', owner: 'them', token: 8n }),
  })),
  ...[findLock, findEphemeralLock].map((operation) => ({
    statement: operation.statement('holdfast'),
    values: operation.encode({ tenant: '', resource: 'r/9' }),
  })),
  ...[getKey, getEphemeralKey].map((operation) => ({
    statement: operation.statement('holdfast'),
    values: operation.encode({ tenant: '', key: 'k/7' }),
  })),
  ...[setKey, setEphemeralKey].map((operation) => ({
    statement: operation.statement('holdfast'),
    values: operation.encode({ tenant: '', key: 'k/8', value: Buffer.from('x'), ttlMs: null, norev: false }),
  })),
  ...[setKeyIf, setEphemeralKeyIf].map((operation) => ({
    statement: operation.statement('holdfast'),
    values: operation.encode({
      tenant: '',
      key: 'k/9',
      value: Buffer.from('x'),
      ttlMs: 1000n,
      norev: false,
      ifAbsent: false,
      ifPresent: false,
      ifValue: null,
      ifRevision: 2n,
    }),
  })),
]

let db: TestDatabase
let kept: Client

/** As pg sends it, by its name: the plan is that of the connection. */
async function call(client: Client, { statement, values }: Call): Promise<number> {
  const { name, text } = statement
  return (await client.query({ name, text, values: [...values] })).rowCount ?? 0
}

beforeAll(async () => {
  db = await createDatabase()
  const tables = [
    'lock',
    'lock_ephemeral',
    'key_value',
    'ephemeral_key_value',
    'key_change',
    'ephemeral_key_change',
  ]
  for (const table of tables) await db.sql(`alter table holdfast.${table} set (autovacuum_enabled = false)`)
  await db.sql('analyze')
  kept = await db.connect()
  await kept.query('begin')
  for (const one of calls) for (let times = 0; times < REPETITIONS; times += 1) await call(kept, one)
  await kept.query('rollback')
  for (const table of ['lock', 'lock_ephemeral'])
    await db.sql(`insert into holdfast.${table} (tenant, resource, owner, token, acquired_at, expires_at)
      select '', 'r/' || i, case when i <> 7 then 'them' end, i, now(), now() + interval '1 day' from generate_series(1, ${ROWS}) i`)
  for (const table of ['key_value', 'ephemeral_key_value'])
    await db.sql(`insert into holdfast.${table} (revision, xid, modified_at, deleted, norev, tenant, key, value)
      select 2, '3', now(), false, false, '', 'k/' || i, 'x' from generate_series(1, ${ROWS}) i`)
  await db.sql(
    'insert into holdfast.ephemeral_key_log (epoch, trimmed_to) values (0, 0) on conflict do nothing',
  )
}, 120_000)
afterAll(async () => await db.drop())

describe('over 100,000 locks and keys', () => {
  it.each(calls.map((one) => ({ name: one.statement.named.operation, one })))(
    '$name goes through no table, and does not call the function it has in hand',
    async ({ one }) => {
      await kept.query('begin')
      await kept.query(`set local track_functions = 'pl'`)
      const rows = await call(kept, one)
      const { rows: scanned } = await kept.query(
        `select relname, seq_tup_read::int from pg_stat_xact_user_tables
         where schemaname = 'holdfast' and relname ~ '(^lock|key_(value|change)$)' and seq_tup_read > 0`,
      )
      const { rows: called } = await kept.query<{ funcname: string }>(
        `select funcname from pg_stat_xact_user_functions where schemaname = 'holdfast' and calls > 0`,
      )
      await kept.query('rollback')
      expect(rows).toBe(1)
      expect(scanned).toEqual([])
      expect(called).toEqual([])
    },
  )
})

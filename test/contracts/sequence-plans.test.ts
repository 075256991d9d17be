import type { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type TestDatabase } from '../support/database.ts'

/** As `plans.test.ts`, for what is inside the functions of sequences: plans that were made while the tables were empty. */

const ROWS = 30_000
const DRAW = 'select * from holdfast.draw_values($1, $2, $3, $4)'

let db: TestDatabase
let client: Client

beforeAll(async () => {
  db = await createDatabase()
  client = await db.connect()
  for (const table of ['sequence', 'sequence_request'])
    await client.query(`alter table holdfast.${table} set (autovacuum_enabled = false)`)
  await client.query('analyze')
  await client.query('begin')
  await client.query(`select holdfast.create_sequence('', 'one', 0, 1, null)`)
  // A generic plan is made at the sixth call.
  for (let call = 0; call < 10; call += 1) {
    await client.query(DRAW, ['', 'one', 1, `k${call}`])
    await client.query(DRAW, ['', 'one', 1, null])
    await client.query(DRAW, ['', 'none', 1, null])
    await client.query(`select holdfast.create_sequence('', 'one', 0, 1, null)`)
  }
  await client.query('rollback')
  await client.query(`insert into holdfast.sequence (tenant, name, initial, current, increment, keyed)
    select '', 'sequence ' || i, 0, 1000, 1, 300 from generate_series(1, ${ROWS}) i`)
  await client.query(`insert into holdfast.sequence_request (sequence_id, place, first_value, count, key)
    select s.id, 300, 1000, 1, 'k' from holdfast.sequence s`)
})

afterAll(async () => {
  await db.drop()
})

/** Rows that were read by going through a table, by this transaction or not reported yet. */
async function read(): Promise<number> {
  const { rows } = await client.query<{ n: string }>(
    `select sum(seq_tup_read) as n from pg_stat_xact_user_tables where relname in ('sequence', 'sequence_request')`,
  )
  return Number(rows[0]?.n)
}

/** Rows that `work` reads by going through a table. */
async function scanned(work: () => Promise<unknown>): Promise<number> {
  await client.query('begin')
  try {
    const before = await read()
    await work()
    return (await read()) - before
  } finally {
    await client.query('rollback')
  }
}

describe('sequences in a session that knew their tables empty', () => {
  it('draw, repeat, refuse and are created by their indexes', async () => {
    const draw = async (name: string, key: string | null, count = 1) =>
      await scanned(async () => await client.query(DRAW, ['', name, count, key]))
    expect(await draw('sequence 7', null)).toBe(0)
    expect(await draw('sequence 7', 'new')).toBe(0)
    expect(await draw('sequence 7', 'k')).toBe(0)
    expect(await draw('none', null)).toBe(0)
    const create = `select holdfast.create_sequence('', 'sequence 7', 0, 1, null)`
    expect(await scanned(async () => await client.query(create))).toBe(0)
  })

  it('show to this test when a table is gone through', async () => {
    expect(await scanned(async () => await client.query('select sum(current) from holdfast.sequence'))).toBe(
      ROWS,
    )
  })
})

import type { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createDatabase, type TestDatabase } from '../support/database.ts'

/**
 * The functions of keys over 100,000 keys and 300,000 changes, with plans that a session made while the tables were empty
 * and has kept, and with plans made now from the statistics of empty tables: they go by indexes, and touch pages in
 * proportion to what they are about.
 */

const KEYS = 100_000
const CHANGES = 300_000

/** What is called, the pages that it may touch, and rows of it. */
const calls: readonly (readonly [call: string, pages: number, rows?: number])[] = [
  [`key_get('', $e, 'k/7/700')`, 20],
  [`key_set('', $e, 'k/7/700', 'x', null, null, null, null, null, null)`, 120],
  [`key_set('', $e, 'k/7/new', 'x', 60000, null, null, null, null, null)`, 200],
  [`key_set('', $e, 'k/7/700', 'x', null, null, null, null, 99, null)`, 20],
  [`key_delete('', $e, 'k/7/701', null, null)`, 120],
  [`key_extend('', $e, 'k/7/702', 1000)`, 120],
  [`key_increment('', $e, 'k/n/7', 1, null)`, 300],
  [`key_get_revision('', $e, 'k/7/700', 1)`, 30],
  [`key_get_as_of('', $e, 'k/7/700', (extract(epoch from now() - interval '20 days') * 1000)::int8)`, 30],
  [`key_get_in_snapshot('', $e, 'k/7/700', pg_current_snapshot(), 9000000000000)`, 30],
  [`key_page('', $e, 'k/5/', false, 'k/50', null, 101, null, null, false)`, 700, 102],
  [`key_page('', $e, 'k/5/', false, 'k/50', null, 101, null, 9000000000000, false)`, 1500, 101],
  [`key_page('', $e, 'k/5/', false, 'k/50', 4, 101, pg_current_snapshot(), 9000000000000, true)`, 1500, 101],
  [`key_bucket('', $e, 'k/1000', null)`, 250, 1],
  [`key_changes('', $e, 'k/7/', 'k/70', null, ${CHANGES - 500}, null, '{}', null, 1000)`, 400],
  [`key_sweep($e, 100)`, 400],
  [`key_trim($e, 1, 1, 100)`, 3000],
]

let db: TestDatabase
let kept: Client
let anew: Client

beforeAll(async () => {
  db = await createDatabase()
  await db.sql(`do $$ declare t regclass; begin
    for t in select oid::regclass from pg_class where relnamespace = 'holdfast'::regnamespace and relkind = 'r' and relname ~ 'key' loop
      execute format('alter table %s set (autovacuum_enabled = false)', t);
    end loop; end $$`)
  await db.sql('analyze')
  kept = await db.connect()
  anew = await db.connect()
  for (const connection of [kept, anew]) await connection.query(`set statement_timeout = '3s'`)
  await kept.query('begin')
  for (const ephemeral of [false, true])
    for (const [call] of calls)
      for (let times = 0; times < 7; times += 1)
        await kept.query(`select * from holdfast.${call.replaceAll('$e', String(ephemeral))}`)
  await kept.query('rollback')
  for (const prefix of ['', 'ephemeral_']) {
    await db.sql(`insert into holdfast.${prefix}key_value (revision, xid, modified_at, expires_at, deleted, norev, tenant, key, value)
      select 2, '3', now(), case when i % 100 = 0 then now() + interval '1 day' end, false, false, '', 'k/' || i % 100 || '/' || i, 'x'
      from generate_series(1, ${KEYS}) i`)
    await db.sql(`insert into holdfast.${prefix}key_value (revision, xid, modified_at, deleted, norev, tenant, key, value)
      values (0, '3', now(), false, false, '', 'k/1000/a', 'x'), (0, '3', now(), false, false, '', 'k/n/7', '7')`)
    await db.sql(`insert into holdfast.${prefix}key_change (place, revision, xid, changed_at, modified_at, kind, norev, tenant, key, value)
      select i, (i - 1) / ${KEYS}, '3', now() - interval '30 days' + i * interval '8 s', now(), 'set', false, '',
        'k/' || (1 + (i - 1) % ${KEYS}) % 100 || '/' || 1 + (i - 1) % ${KEYS}, 'x'
      from generate_series(1, ${CHANGES}) i`)
    await db.sql(`select setval('holdfast.${prefix}key_place_seq', ${CHANGES})`)
  }
  await db.sql(
    `insert into holdfast.ephemeral_key_log (epoch, trimmed_to) values (0, 0) on conflict do nothing`,
  )
}, 120_000)
afterAll(async () => await db.drop())

interface PlanNode {
  readonly 'Shared Hit Blocks': number
  readonly 'Shared Read Blocks': number
  readonly 'Actual Rows': number
}

describe.each([
  ['persistent', false],
  ['ephemeral', true],
] as const)('over 100,000 %s keys', (_, ephemeral) => {
  it.each(calls.map(([call, pages, rows]) => ({ call, pages, rows })))(
    '$call touches few pages, and goes through no table',
    async ({ call, pages, rows }) => {
      for (const connection of [kept, anew]) {
        await connection.query('rollback')
        await connection.query('begin')
        const text = `holdfast.${call.replaceAll('$e', String(ephemeral))}`
        // Once for the catalogue.
        if (connection === anew) await connection.query(`select * from ${text}`)
        await connection.query('rollback')
        await connection.query('begin')
        const explained = await connection.query<{ 'QUERY PLAN': { Plan: PlanNode }[] }>(
          `explain (analyze, buffers, format json) select * from ${text}`,
        )
        const { rows: scanned } = await connection.query(
          `select relname, seq_tup_read::int from pg_stat_xact_user_tables
         where schemaname = 'holdfast' and relname ~ 'key_(value|change)$' and seq_tup_read > 0`,
        )
        await connection.query('rollback')
        const plan = explained.rows[0]?.['QUERY PLAN'][0]?.Plan as PlanNode
        expect(scanned).toEqual([])
        expect(plan['Shared Hit Blocks'] + plan['Shared Read Blocks']).toBeLessThan(pages)
        if (rows !== undefined) expect(plan['Actual Rows']).toBe(rows)
      }
    },
  )
})

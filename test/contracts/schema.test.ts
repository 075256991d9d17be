import fs from 'node:fs'
import { describe, expect, it } from 'vitest'
import { dumpSchema, schemaFile } from '../../scripts/dump-schema.mjs'
import { createDatabase, type TestDatabase } from '../support/database.ts'

const dump = async (db: TestDatabase) =>
  await dumpSchema(async (text, params) => await db.sql(text, params as unknown[] | undefined))

describe('sql/schema.sql', () => {
  it('is what the migrations make (to bring it up to date: HOLDFAST_WRITE_SCHEMA=1 npx vitest run test/contracts/schema.test.ts)', async () => {
    await using db = await createDatabase()
    const made = await dump(db)
    if (process.env['HOLDFAST_WRITE_SCHEMA'] === '1') fs.writeFileSync(schemaFile, made)
    expect(fs.readFileSync(schemaFile, 'utf8')).toBe(made)
  })

  it('makes the same schema when it is run by itself', async () => {
    await using db = await createDatabase({ migrated: false })
    const client = await db.connect()
    await client.query(fs.readFileSync(schemaFile, 'utf8'))
    expect(await dump(db)).toBe(fs.readFileSync(schemaFile, 'utf8'))
  })

  it('shows a change: of a column, a default, an index, a function', async () => {
    await using db = await createDatabase()
    const before = await dump(db)
    const changes = [
      'alter table holdfast.queue add column extra int',
      'alter table holdfast.queue alter column pause_reason set default 5',
      'create index extra_idx on holdfast.queue (paused_at)',
      'create function holdfast.extra() returns int language sql as $$ select 1 $$',
      'alter table holdfast.ready set (fillfactor = 60)',
    ]
    let last = before
    for (const change of changes) {
      await db.sql(change)
      const now = await dump(db)
      expect(now, change).not.toBe(last)
      last = now
    }
  })
})

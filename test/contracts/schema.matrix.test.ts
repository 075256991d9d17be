import fs from 'node:fs'
import { expect, it } from 'vitest'
import { dumpSchema, schemaFile } from '../../scripts/dump-schema.mjs'
import { describeEachPostgres } from '../support/matrix.ts'

describeEachPostgres('sql/schema.sql', (postgres) => {
  it('is the same on every version', async () => {
    await using db = await postgres.createDatabase()
    const made = await dumpSchema(async (text, params) => await db.sql(text, params as unknown[] | undefined))
    expect(fs.readFileSync(schemaFile, 'utf8')).toBe(made)
  })
})

import { describe, it } from 'vitest'
import { defineApp } from '../../../src/index.ts'
import { hostile } from '../../conformance/subjects/postgres-js.ts'
import { createDatabase, openPool } from '../../support/database.ts'
import { keysRound } from './round.ts'

describe('keys give the same answers', () => {
  it('over a postgres.js instance with conversions of its own', async () => {
    await using db = await createDatabase()
    const sql = hostile(db.url)
    await using app = defineApp({ name: 'keys', database: sql, jobs: [] })
    await keysRound(app)
    await app.close()
    await sql.end()
  })

  it("over a pool of the user's own, at any isolation by default", async () => {
    await using db = await createDatabase()
    await db.sql(`alter database ${db.name} set default_transaction_isolation = 'serializable'`)
    const pool = openPool({ connectionString: db.url, max: 4 })
    await using app = defineApp({ name: 'keys', database: pool, jobs: [] })
    await keysRound(app)
    await app.close()
    await pool.end()
  })

  it('with nothing prepared and nothing listened to, as behind a transaction pooler', async () => {
    await using db = await createDatabase()
    await using app = defineApp({ name: 'keys', database: db.url, jobs: [], pooler: true })
    await keysRound(app)
  })
})

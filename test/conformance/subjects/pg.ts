import { Client } from 'pg'
import { inTransaction } from '../../integration/homes.ts'
import { openPool } from '../../support/database.ts'
import { type OwnTransaction, onPostgres } from './subject.ts'

export const pg = onPostgres({ name: 'pg' }, async ({ url }) => {
  const pool = openPool({ connectionString: url })
  const idle = await pool.connect()
  return {
    async transaction(fn) {
      const client = await pool.connect()
      try {
        return await inTransaction(
          client as unknown as Client,
          async () => await fn(ownOf(client as unknown as Client)),
        )
      } finally {
        client.release()
      }
    },
    mistakes: {
      'a pool': { tx: pool, says: /pool.*connect\(\)/ },
      'a client outside a transaction': { tx: idle, says: /"begin"/ },
      'a client that is not connected': { tx: new Client(), says: /"begin"/ },
    },
    async end() {
      idle.release()
      await pool.end()
    },
  }
})

function ownOf(client: Client): OwnTransaction {
  return {
    tx: client,
    query: async (text) => await client.query(text),
    async savepoint(fn) {
      await client.query('savepoint inner_part')
      try {
        return await fn(ownOf(client))
      } catch (error) {
        await client.query('rollback to inner_part')
        throw error
      }
    },
  }
}

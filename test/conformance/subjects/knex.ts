import createKnex, { type Knex } from 'knex'
import { type OwnTransaction, onPostgres } from './subject.ts'

export const knex = onPostgres({ name: 'Knex' }, async ({ url }) => {
  const db = createKnex({
    client: 'pg',
    connection: url,
    pool: { min: 0, max: 3 },
    // An application's own shape of answers, which must not be ours.
    postProcessResponse: (response: unknown) => ({ wrapped: response }),
  })
  return {
    transaction: async (fn) => await db.transaction(async (trx) => await fn(ownOf(trx))),
    mistakes: { 'an instance': { tx: db, says: /Knex instance: .*knex\.transaction/ } },
    end: async () => await db.destroy(),
  }
})

function ownOf(trx: Knex.Transaction): OwnTransaction {
  return {
    tx: trx,
    query: async (text) => await trx.raw(text),
    savepoint: async (fn) => await trx.transaction(async (inner) => await fn(ownOf(inner))),
  }
}

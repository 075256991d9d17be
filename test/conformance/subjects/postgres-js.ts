import postgres from 'postgres'
import { type OwnTransaction, onPostgres } from './subject.ts'

/** With what an application may have changed: names of columns, and how text is read. */
export function hostile(url: string): postgres.Sql {
  return postgres(url, {
    max: 4,
    onnotice: () => {},
    transform: { ...postgres.pascal, undefined: null },
    types: {
      shouted: { to: 25, from: [25, 20, 1016], serialize: (x: unknown) => x, parse: (x: string) => `${x}!` },
    },
  })
}

export const postgresJs = onPostgres({ name: 'postgres.js' }, async ({ url }) => {
  const sql = hostile(url)
  const reserved = await sql.reserve()
  return {
    transaction: async (fn) => (await sql.begin(async (tx) => [await fn(ownOf(tx))] as const))[0],
    mistakes: {
      'an instance': { tx: sql, says: /sql\.begin/ },
      'a reserved connection outside a transaction': { tx: reserved, says: /ended/ },
    },
    async end() {
      reserved.release()
      await sql.end()
    },
  }
})

function ownOf(tx: postgres.TransactionSql): OwnTransaction {
  return {
    tx,
    query: async (text) => await tx.unsafe(text),
    savepoint: async (fn) => (await tx.savepoint(async (inner) => [await fn(ownOf(inner))] as const))[0],
  }
}

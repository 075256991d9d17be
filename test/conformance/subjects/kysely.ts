import {
  CamelCasePlugin,
  CompiledQuery,
  type ControlledTransaction,
  Kysely,
  PostgresDialect,
  type Transaction,
} from 'kysely'
import { openPool } from '../../support/database.ts'
import { type OwnTransaction, onPostgres } from './subject.ts'

type Tables = Record<string, never>

function connect(url: string): Kysely<Tables> {
  const dialect = new PostgresDialect({ pool: openPool({ connectionString: url }) })
  // Renames columns in every answer.
  return new Kysely<Tables>({ dialect, plugins: [new CamelCasePlugin({ upperCase: true })] })
}

export const kysely = onPostgres({ name: 'Kysely' }, async ({ url }) => {
  const db = connect(url)
  return {
    transaction: async (fn) => await db.transaction().execute(async (trx) => await fn(ownOf(trx))),
    mistakes: { 'an instance': { tx: db, says: /Kysely instance: .*db\.transaction\(\)/ } },
    end: async () => await db.destroy(),
  }
})

export const kyselyControlled = onPostgres({ name: 'Kysely, startTransaction' }, async ({ url }) => {
  const db = connect(url)
  return {
    async transaction(fn) {
      const trx = await db.startTransaction().execute()
      try {
        const result = await fn(controlledOf(trx))
        await trx.commit().execute()
        return result
      } catch (error) {
        await trx.rollback().execute()
        throw error
      }
    },
    mistakes: {},
    end: async () => await db.destroy(),
  }
})

function ownOf(trx: Transaction<Tables>): OwnTransaction {
  return { tx: trx, query: async (text) => await trx.executeQuery(CompiledQuery.raw(text)) }
}

function controlledOf(trx: ControlledTransaction<Tables>): OwnTransaction {
  return {
    ...ownOf(trx),
    async savepoint(fn) {
      const inner = await trx.savepoint('inner_part').execute()
      try {
        return await fn(ownOf(inner))
      } catch (error) {
        await inner.rollbackToSavepoint('inner_part').execute()
        throw error
      }
    },
  }
}

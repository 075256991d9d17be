import { Sequelize, type Transaction } from 'sequelize'
import { type OwnTransaction, onPostgres } from './subject.ts'

export const sequelize = onPostgres({ name: 'Sequelize' }, async ({ url }) => {
  const db = new Sequelize(url, { dialect: 'postgres', logging: false })
  const ownOf = (transaction: Transaction): OwnTransaction => ({
    tx: transaction,
    query: async (text) => await db.query(text, { transaction }),
    savepoint: async (fn) => await db.transaction({ transaction }, async (inner) => await fn(ownOf(inner))),
  })
  return {
    transaction: async (fn) => await db.transaction(async (transaction) => await fn(ownOf(transaction))),
    mistakes: { 'an instance': { tx: db, says: /Sequelize instance: .*sequelize\.transaction/ } },
    end: async () => await db.close(),
  }
})

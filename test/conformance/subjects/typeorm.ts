import { DataSource, type EntityManager } from 'typeorm'
import { type OwnTransaction, onPostgres } from './subject.ts'

async function connect(url: string): Promise<DataSource> {
  return await new DataSource({ type: 'postgres', url, entities: [] }).initialize()
}

export const typeOrm = onPostgres({ name: 'TypeORM' }, async ({ url }) => {
  const source = await connect(url)
  const idle = source.createQueryRunner()
  return {
    transaction: async (fn) => await source.transaction(async (manager) => await fn(ownOf(manager, manager))),
    mistakes: {
      'a data source': { tx: source, says: /DataSource.*dataSource\.transaction/ },
      'the manager of a data source': { tx: source.manager, says: /dataSource\.transaction/ },
      'a query runner outside a transaction': { tx: idle, says: /startTransaction/ },
      'the manager of a query runner outside a transaction': { tx: idle.manager, says: /startTransaction/ },
    },
    async end() {
      await idle.release()
      await source.destroy()
    },
  }
})

export const typeOrmRunner = onPostgres({ name: 'TypeORM, query runner' }, async ({ url }) => {
  const source = await connect(url)
  return {
    async transaction(fn) {
      const runner = source.createQueryRunner()
      await runner.startTransaction()
      try {
        const result = await fn({ tx: runner, query: async (text) => await runner.query(text) })
        await runner.commitTransaction()
        return result
      } catch (error) {
        await runner.rollbackTransaction()
        throw error
      } finally {
        await runner.release()
      }
    },
    mistakes: {},
    end: async () => await source.destroy(),
  }
})

function ownOf(manager: EntityManager, tx: unknown): OwnTransaction {
  return {
    tx,
    query: async (text) => await manager.query(text),
    savepoint: async (fn) => await manager.transaction(async (inner) => await fn(ownOf(inner, inner))),
  }
}

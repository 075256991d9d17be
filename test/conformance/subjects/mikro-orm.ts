import { type EntityManager, EntitySchema, MikroORM } from '@mikro-orm/postgresql'
import { type OwnTransaction, onPostgres } from './subject.ts'

/** MikroORM does not start without an entity. */
const entity = new EntitySchema({ name: 'Trail', properties: { step: { type: 'number', primary: true } } })

export const mikroOrm = onPostgres({ name: 'MikroORM' }, async ({ url }) => {
  const orm = await MikroORM.init({ clientUrl: url, entities: [entity] })
  const fork = orm.em.fork()
  return {
    transaction: async (fn) => await orm.em.fork().transactional(async (em) => await fn(ownOf(em))),
    mistakes: {
      'the entity manager of the ORM': { tx: orm.em, says: /em\.transactional/ },
      'a fork outside a transaction': { tx: fork, says: /em\.begin\(\)/ },
    },
    end: async () => await orm.close(true),
  }
})

export const mikroOrmBegin = onPostgres({ name: 'MikroORM, em.begin' }, async ({ url }) => {
  const orm = await MikroORM.init({ clientUrl: url, entities: [entity] })
  return {
    async transaction(fn) {
      const em = orm.em.fork()
      await em.begin()
      try {
        const result = await fn({ tx: em, query: async (text) => await em.execute(text) })
        await em.commit()
        return result
      } catch (error) {
        await em.rollback()
        throw error
      }
    },
    mistakes: {},
    end: async () => await orm.close(true),
  }
})

function ownOf(em: EntityManager): OwnTransaction {
  return {
    tx: em,
    query: async (text) => await em.execute(text),
    savepoint: async (fn) => await em.transactional(async (inner) => await fn(ownOf(inner as EntityManager))),
  }
}

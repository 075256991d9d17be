import { openMigratedPglite } from '../../support/backends.ts'
import type { Subject } from './subject.ts'

export const pglite: Subject = {
  name: 'PGlite',
  async open() {
    const instance = await openMigratedPglite()
    return {
      database: instance,
      sql: async (text, params = []) =>
        (await instance.query<Record<string, unknown>>(text, [...params])).rows,
      transaction: async (fn) =>
        await instance.transaction(
          async (tx) => await fn({ tx, query: async (text) => await tx.query(text) }),
        ),
      mistakes: { 'an instance': { tx: instance, says: /db\.transaction/ } },
      close: async () => await instance.close(),
    }
  },
}

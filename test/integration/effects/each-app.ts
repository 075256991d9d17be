import { describe } from 'vitest'
import { type App, defineApp } from '../../../src/index.ts'
import { type AppSettings, EventLog } from '../../faults/apps.ts'
import { openMigratedPglite, testsEmbedded } from '../../support/backends.ts'
import { createDatabase } from '../../support/database.ts'

/** An application on either back end, with its worker running. */
export interface EachApp extends AsyncDisposable {
  readonly app: App
  readonly events: EventLog
  readonly sql: <R extends Record<string, unknown> = Record<string, unknown>>(
    text: string,
    params?: readonly unknown[],
  ) => Promise<R[]>
}

export interface AppSuite {
  readonly kind: 'pg' | 'pglite'
  /** Starts a worker unless `worker: false`. */
  readonly open: (settings: AppSettings & { readonly worker?: boolean }) => Promise<EachApp>
}

/** Runs the same tests with an application on PostgreSQL and on PGlite. */
export function describeEachApp(name: string, define: (suite: AppSuite) => void): void {
  describe(`${name} (PostgreSQL)`, () => {
    define({
      kind: 'pg',
      async open(settings) {
        const db = await createDatabase()
        return await start(db.url, settings, {
          sql: async <R extends Record<string, unknown>>(text: string, params?: readonly unknown[]) =>
            await db.sql<R>(text, params),
          close: async () => await db.drop(),
        })
      },
    })
  })
  if (!testsEmbedded) return
  describe(`${name} (PGlite)`, () => {
    define({
      kind: 'pglite',
      async open(settings) {
        const instance = await openMigratedPglite()
        return await start(instance, settings, {
          sql: async <R extends Record<string, unknown>>(text: string, params: readonly unknown[] = []) =>
            (await instance.query<R>(text, [...params])).rows,
          close: async () => await instance.close(),
        })
      },
    })
  })
}

async function start(
  database: unknown,
  { worker = true, ...settings }: AppSettings & { readonly worker?: boolean },
  backend: Pick<EachApp, 'sql'> & { readonly close: () => Promise<void> },
): Promise<EachApp> {
  const app = defineApp({ shutdownMs: 0, shutdownGraceMs: 100, ...settings, database, name: 'test' })
  const events = new EventLog(app)
  if (worker) await app.worker().start()
  return {
    app,
    events,
    sql: backend.sql,
    async [Symbol.asyncDispose]() {
      await app.close()
      await backend.close()
    },
  }
}

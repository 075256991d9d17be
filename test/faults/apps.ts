import type { EventMap, EventName } from '../../src/base/events.ts'
import { type App, type AppOptions, defineApp } from '../../src/index.ts'
import { openMigratedPglite } from '../support/backends.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { eventually, type WaitOptions } from '../support/eventually.ts'

/** Everything an application has told, in order, and a way to await what it tells next. */
export class EventLog {
  readonly all: { readonly name: EventName; readonly facts: unknown; readonly atMs: number }[] = []

  constructor(app: App) {
    for (const name of eventNames) {
      app.events.on(name, (facts) => void this.all.push({ name, facts, atMs: performance.now() }))
    }
  }

  of<N extends EventName>(name: N): EventMap[N][] {
    return this.all.filter((event) => event.name === name).map((event) => event.facts as EventMap[N])
  }

  /** When the first event of that name was told, in milliseconds of `performance.now()`. */
  atMs(name: EventName): number | undefined {
    return this.all.find((event) => event.name === name)?.atMs
  }

  /** The first event of that name that `where` accepts, told already or within the deadline. */
  async first<N extends EventName>(
    name: N,
    where: (facts: EventMap[N]) => boolean = () => true,
    options: WaitOptions = {},
  ): Promise<EventMap[N]> {
    return (await eventually(`event "${name}"`, () => this.of(name).find(where), {
      pollMs: 5,
      ...options,
    })) as EventMap[N]
  }
}

const eventNames = Object.keys({
  'jobs.enqueued': 1,
  'jobs.claimed': 1,
  'attempt.started': 1,
  'job.completed': 1,
  'attempt.failed': 1,
  'job.discarded': 1,
  'job.cancelled': 1,
  'job.snoozed': 1,
  'jobs.handedBack': 1,
  'job.parked': 1,
  'write.refused': 1,
  'result.altered': 1,
  'effect.uncertain': 1,
  'lease.lost': 1,
  'jobs.rescued': 1,
  'handler.abandoned': 1,
  'loop.blocked': 1,
  'wakeup.degraded': 1,
  'wakeup.restored': 1,
  'worker.error': 1,
  'worker.started': 1,
  'worker.stopped': 1,
  'listener.failed': 1,
} satisfies Record<EventName, 1>) as EventName[]

export interface OpenedApp extends AsyncDisposable {
  readonly app: App
  readonly db: TestDatabase
  readonly events: EventLog
}

export type AppSettings = Omit<AppOptions, 'name' | 'database'> & { readonly database?: unknown }

/** A database of its own and an application over it; both end with the scope. Workers stop at once. */
export async function openApp(settings: AppSettings): Promise<OpenedApp> {
  const db = await createDatabase()
  const opened = appOn(db, settings)
  return {
    ...opened,
    async [Symbol.asyncDispose]() {
      await opened[Symbol.asyncDispose]()
      await db.drop()
    },
  }
}

/** Another application over a database that is there already, as another process would have it. */
export function appOn(db: TestDatabase, settings: AppSettings): OpenedApp {
  const app = defineApp({ shutdownMs: 0, shutdownGraceMs: 100, database: db.url, ...settings, name: 'test' })
  return { app, db, events: new EventLog(app), [Symbol.asyncDispose]: async () => await app.close() }
}

export interface EmbeddedApp extends AsyncDisposable {
  readonly app: App
  readonly events: EventLog
}

/** An application over an embedded database. */
export async function openEmbeddedApp(settings: AppSettings): Promise<EmbeddedApp> {
  const instance = await openMigratedPglite()
  const app = defineApp({
    shutdownMs: 0,
    shutdownGraceMs: 100,
    ...settings,
    database: instance,
    name: 'test',
  })
  return {
    app,
    events: new EventLog(app),
    async [Symbol.asyncDispose]() {
      await app.close()
      await instance.close()
    },
  }
}

import type { PGlite } from '@electric-sql/pglite'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { Client } from 'pg'
import { describe } from 'vitest'
import type { EffectName } from '../../src/effects/effect-name.ts'
import { type App, type AppOptions, defineApp, type JobContext } from '../../src/index.ts'
import { type AnyJob, defineJob, type Job } from '../../src/jobs/define-job.ts'
import type { EnqueueAnswer, EnqueueOptions } from '../../src/jobs/enqueue-options.ts'
import { openMigratedPglite, testsEmbedded } from '../support/backends.ts'
import { createDatabase, openPool } from '../support/database.ts'
import { withResolvers } from '../support/eventually.ts'

/** A transaction that a test opened itself, on whichever back end. */
export interface OwnTransaction {
  /** What `tx` takes. */
  readonly tx: unknown
  readonly query: (text: string, params?: readonly unknown[]) => Promise<Record<string, unknown>[]>
}

/** A migrated database, and an application over it. */
export interface Home {
  readonly kind: 'pg' | 'pglite'
  /** What `defineApp` takes as `database`. */
  readonly database: string | PGlite
  readonly app: App
  readonly sql: <R extends Record<string, unknown> = Record<string, unknown>>(
    text: string,
    params?: readonly unknown[],
  ) => Promise<R[]>
  /** Runs `fn` in a transaction of the test's own; commits it, or rolls back what throws. */
  transaction<T>(fn: (own: OwnTransaction) => Promise<T>): Promise<T>
  /** How many jobs there are. */
  count(): Promise<number>
  /** Starts a worker; it is stopped with the application. */
  work(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export type HomeOptions = Omit<Partial<AppOptions>, 'database'>

/** Accepts every value as it is. */
export function anything<T = unknown>(): StandardSchemaV1<T> {
  return { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value: value as T }) } }
}

/** A job that does nothing, of any input. */
export const note = defineJob({
  name: 'test.note',
  input: anything(),
  idempotent: true,
  handler: (_ctx, input) => input,
})

/** The context of a handler that may enqueue every job of its application. */
export type AnyContext = JobContext<object, EffectName>
type Work = (ctx: AnyContext) => unknown
const errands = new Map<string, Work>()

/** A job that runs what {@link runInHandler} was given, and may enqueue `jobs`. */
function errandOver(jobs: readonly AnyJob[]): AnyJob {
  const names = new Set(['test.errand', ...jobs.map(({ name }) => name)])
  return defineJob({
    name: 'test.errand',
    queue: 'errands',
    input: anything<string>(),
    effects: [...names].map((name) => `enqueue:${name}` as const),
    idempotent: true,
    maxAttempts: 1,
    handler: async (ctx, key) => await errands.get(key)?.(ctx),
  })
}

/** Runs `work` in a handler, and gives what it gave or threw. Needs a worker: `home.work()`. */
export async function runInHandler<T>(home: Home, work: (ctx: AnyContext) => Promise<T>): Promise<T> {
  const key = String(Math.random())
  const { promise, resolve, reject } = withResolvers<T>()
  errands.set(key, async (ctx) => {
    try {
      resolve(await work(ctx))
    } catch (error) {
      reject(error as Error)
    }
  })
  // It may be through before the enqueue has been answered.
  promise.catch(() => {})
  await home.app.enqueue(home.app.composition.jobs.get('test.errand') as AnyJob, key)
  return await promise.finally(() => errands.delete(key))
}

export interface HomeSuite {
  readonly kind: 'pg' | 'pglite'
  readonly open: (options?: HomeOptions) => Promise<Home>
}

/** Runs the same tests on PostgreSQL and on PGlite. */
export function describeEachHome(name: string, define: (suite: HomeSuite) => void): void {
  describe(`${name} (PostgreSQL)`, () => {
    define({ kind: 'pg', open: openPgHome })
  })
  if (!testsEmbedded) return
  describe(`${name} (PGlite)`, () => {
    define({ kind: 'pglite', open: openPgliteHome })
  })
}

/** The application of a test over `database`. */
export function appOver(database: unknown, options: HomeOptions = {}): App {
  const jobs = [note, ...(options.jobs ?? [])]
  return defineApp({
    name: 'test',
    database,
    maxPollMs: 200,
    shutdownMs: 0,
    shutdownGraceMs: 0,
    ...options,
    queues: { default: {}, errands: {}, mail: {}, ...options.queues },
    jobs: [errandOver(jobs), ...jobs],
  })
}

export async function openPgHome(options: HomeOptions = {}): Promise<Home & { readonly url: string }> {
  const database = await createDatabase()
  const app = appOver(database.url, options)
  return {
    kind: 'pg',
    database: database.url,
    url: database.url,
    app,
    sql: (text, params) => database.sql(text, params),
    async transaction(fn) {
      const client = new Client({ connectionString: database.url })
      client.on('error', () => {})
      await client.connect()
      try {
        return await inTransaction(client, fn)
      } finally {
        await client.end()
      }
    },
    count: async () => Number((await database.sql('select count(*) from holdfast.job'))[0]?.['count']),
    work: async () => await app.worker().start(),
    async [Symbol.asyncDispose]() {
      await app.close()
      await database.drop()
    },
  }
}

/** Runs `fn` between `begin` and `commit` of `client`. */
export async function inTransaction<T>(
  client: Pick<Client, 'query'>,
  fn: (own: OwnTransaction) => Promise<T>,
): Promise<T> {
  await client.query('begin')
  try {
    const result = await fn({
      tx: client,
      query: async (text, params = []) =>
        (await client.query<Record<string, unknown>>(text, [...params])).rows,
    })
    await client.query('commit')
    return result
  } catch (error) {
    await client.query('rollback')
    throw error
  }
}

export async function openPgliteHome(options: HomeOptions = {}): Promise<Home> {
  const instance = await openMigratedPglite()
  const app = appOver(instance, options)
  const sql: Home['sql'] = async <R extends Record<string, unknown>>(
    text: string,
    params: readonly unknown[] = [],
  ) => (await instance.query<R>(text, [...params])).rows
  return {
    kind: 'pglite',
    database: instance,
    app,
    sql,
    transaction: async (fn) =>
      await instance.transaction(
        async (tx) =>
          await fn({
            tx,
            query: async (text, params = []) =>
              (await tx.query<Record<string, unknown>>(text, [...params])).rows,
          }),
      ),
    count: async () => Number((await sql('select count(*) from holdfast.job'))[0]?.['count']),
    work: async () => await app.worker().start(),
    async [Symbol.asyncDispose]() {
      await app.close()
      await instance.close()
    },
  }
}

/** What every door takes: the options of `enqueue`, as a caller without types might give them. */
export type LooseOptions = { readonly [K in keyof EnqueueOptions]?: unknown }

/** One way to enqueue. */
export interface Door {
  readonly name: string
  enqueue(home: Home, job: Job, input: unknown, options?: LooseOptions): Promise<EnqueueAnswer>
}

/** The ways that take the options of TypeScript; all promise the same. `ctx.enqueue` needs `home.work()`. */
export function doorsOf(kind: 'pg' | 'pglite'): readonly Door[] {
  const loose = (options: LooseOptions | undefined) => options as EnqueueOptions
  const doors: Door[] = [
    {
      name: 'app.enqueue',
      enqueue: async ({ app }, job, input, options) => await app.enqueue(job, input, loose(options)),
    },
    {
      name: 'app.enqueue among others',
      async enqueue({ app }, job, input, options) {
        const [answer] = await Promise.all([
          app.enqueue(job, input, loose(options)),
          ...[1, 2, 3].map(async () => await app.enqueue(note, 'beside').catch(() => {})),
        ])
        return answer
      },
    },
    {
      name: 'app.enqueueMany',
      enqueue: async ({ app }, job, input, options) =>
        only(await app.enqueueMany([{ job, input, ...loose(options) }])),
    },
    {
      name: "tx of the caller's own",
      enqueue: async (home, job, input, options) =>
        await home.transaction(
          async ({ tx }) => await home.app.enqueue(job, input, { ...loose(options), tx }),
        ),
    },
    {
      name: "enqueueMany with a tx of the caller's own",
      enqueue: async (home, job, input, options) =>
        await home.transaction(async ({ tx }) =>
          only(await home.app.enqueueMany([{ job, input, ...loose(options) }], { tx })),
        ),
    },
    {
      name: 'app.transaction',
      enqueue: async ({ app }, job, input, options) =>
        await app.transaction(async (tx) => await tx.enqueue(job, input, loose(options))),
    },
    {
      name: 'enqueueMany of app.transaction',
      enqueue: async ({ app }, job, input, options) =>
        await app.transaction(async (tx) => only(await tx.enqueueMany([{ job, input, ...loose(options) }]))),
    },
    {
      name: 'ctx.enqueue',
      enqueue: async (home, job, input, options) =>
        await runInHandler(home, async (ctx) => await ctx.enqueue(job, input, loose(options))),
    },
  ]
  if (kind === 'pg') {
    doors.push({
      name: 'tx of a pool client',
      async enqueue(home, job, input, options) {
        const pool = openPool({ connectionString: home.database as string, max: 1 })
        const client = await pool.connect()
        try {
          return await inTransaction(
            client as unknown as Client,
            async ({ tx }) => await home.app.enqueue(job, input, { ...loose(options), tx }),
          )
        } finally {
          client.release()
          await pool.end()
        }
      },
    })
  }
  return doors
}

function only(answers: readonly EnqueueAnswer[]): EnqueueAnswer {
  const [answer] = answers
  if (answer === undefined || answers.length !== 1) throw new Error(`${answers.length} answers for one job`)
  return answer
}

/** Enqueues by SQL. `options` are named as the function's parameters; each is sent as text and cast. */
export async function enqueueBySql(
  query: (text: string, params?: readonly unknown[]) => Promise<Record<string, unknown>[]>,
  name: string,
  inputJson: string | null,
  options: Readonly<Record<string, string | null>> = {},
): Promise<EnqueueAnswer> {
  const types: Readonly<Record<string, string>> = {
    run_at: 'timestamptz',
    delay_ms: 'float8',
    priority: 'integer',
    max_attempts: 'integer',
  }
  const names = Object.keys(options)
  const args = names.map((option, i) => `, ${option} => $${i + 3}::text::${types[option] ?? 'text'}`)
  const [row] = await query(
    `select id::text, status from holdfast.enqueue($1::text, $2::text::json${args.join('')})`,
    [name, inputJson, ...names.map((option) => options[option])],
  )
  return row as unknown as EnqueueAnswer
}

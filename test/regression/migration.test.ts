import { describe, expect, it } from 'vitest'
import { createPgDriver } from '../../src/adapters/pg.ts'
import { SchemaVersionError } from '../../src/index.ts'
import {
  migrate,
  readMigrations,
  readVersion,
  renderMigration,
  splitStatements,
} from '../../src/migrations/migrate.ts'
import { appOver, note, openPgHome } from '../integration/homes.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { startProgram } from '../support/processes.ts'

const newest = (await readMigrations()).at(-1)?.version ?? 0

/** Row 44. */
describe('migrating by eight processes at once', () => {
  it('succeeds for all, applies each step once, and lets each enqueue, ten rounds', async () => {
    await using db = await createDatabase({ migrated: false })
    const programs = Array.from({ length: 8 }, () =>
      startProgram('test/regression/programs/migrate.ts', { args: [db.url] }),
    )
    try {
      await Promise.all(
        programs.map(async (program) => await program.message('ready', { deadlineMs: 60_000 })),
      )
      for (let round = 0; round < 10; round += 1) {
        const schema = `round_${round}`
        for (const program of programs) program.send({ kind: 'migrate', schema })
        const answers = await Promise.all(
          programs.map(
            async (program) =>
              await program.message('migrated', { where: (m) => m['schema'] === schema, deadlineMs: 30_000 }),
          ),
        )
        expect(answers.map((answer) => answer['error'] ?? null)).toEqual(answers.map(() => null))
        expect(answers.flatMap((answer) => answer['applied'])).toHaveLength(newest)
        expect(await db.sql(`select version from ${schema}.migration order by 1`)).toHaveLength(newest)
        expect(await db.sql(`select from ${schema}.job`)).toHaveLength(8)
      }
    } finally {
      await Promise.all(programs.map(async (program) => await program[Symbol.asyncDispose]()))
    }
  }, 120_000)
})

/** Holds each migration up at its view, near its end, until the transaction of what it gives is over. */
async function holdMigrations(db: TestDatabase) {
  await db.sql(`create function public.hold() returns event_trigger language plpgsql as
    $$ begin perform pg_catalog.pg_advisory_xact_lock(42); end $$`)
  await db.sql(
    `create event trigger hold on ddl_command_start when tag in ('CREATE VIEW') execute function public.hold()`,
  )
  const blocker = await db.connect()
  await blocker.query('begin')
  await blocker.query('select pg_advisory_xact_lock(42)')
  return blocker
}

/** Backends that wait for a lock, once there are so many. Not asked by a transaction: pg_stat_activity stays as it was in one. */
async function waitingBackends(db: TestDatabase, count: number) {
  const waiting = `select pid from pg_stat_activity where datname = '${db.name}' and wait_event_type = 'Lock'`
  return await eventually(`${count} wait`, async () => {
    const rows = await db.sql<{ pid: number }>(waiting)
    return rows.length === count && rows
  })
}

/**
 * A session remembers that a name stood for nothing, and need not hear within a transaction that it stands for something now. So
 * a migration that waited for another process's would have made its table again.
 */
it('a transaction that found no schema sees the one that another has made since', async () => {
  await using db = await createDatabase({ migrated: false })
  const driver = createPgDriver({ url: db.url })
  try {
    const versions = await driver.transaction(async (tx) => {
      const before = await readVersion(tx, 'made')
      await db.sql('create schema made')
      await db.sql('create table made.migration as select 7 as version, false as breaking')
      return [before?.version, (await readVersion(tx, 'made'))?.version]
    })
    expect(versions).toEqual([undefined, 7])
  } finally {
    await driver.close()
  }
})

it('a migration that waited for another one’s applies nothing again', async () => {
  await using db = await createDatabase({ migrated: false })
  const drivers = [createPgDriver({ url: db.url }), createPgDriver({ url: db.url, maxConnections: 1 })]
  try {
    const blocker = await holdMigrations(db)
    const running = drivers.map(async (driver, n) => {
      if (n > 0) await waitingBackends(db, n)
      return await migrate(driver, 'waited')
    })
    await waitingBackends(db, drivers.length)
    await blocker.query('rollback')

    const results = await Promise.all(running)
    expect(results.map(({ version }) => version)).toEqual([newest, newest])
    expect(results.flatMap(({ applied }) => applied)).toHaveLength(newest)
  } finally {
    await Promise.all(drivers.map(async (driver) => await driver.close()))
  }
})

describe('a migration that is interrupted', () => {
  it('leaves nothing of it, and is finished by the next call', async () => {
    await using db = await createDatabase({ migrated: false })
    const driver = createPgDriver({ url: db.url })
    try {
      const blocker = await holdMigrations(db)
      const interrupted = migrate(driver, 'held').catch((error: unknown) => error)
      const [backend] = await waitingBackends(db, 1)
      await blocker.query('select pg_terminate_backend($1)', [backend?.pid])
      await blocker.query('rollback')
      expect(await db.sql(`select to_regclass('held.job') as job`)).toEqual([{ job: null }])
      expect(await interrupted).toMatchObject({ code: expect.stringMatching(/OUTCOME_UNKNOWN|UNAVAILABLE/) })

      expect(await migrate(driver, 'held')).toMatchObject({ version: newest })
      expect(await migrate(driver, 'held')).toEqual({ applied: [], version: newest })
      expect(await db.sql('select version from held.migration')).toHaveLength(newest)
    } finally {
      await driver.close()
    }
  })

  it('goes on where it was, whatever statement it was killed at', async () => {
    const [first] = await readMigrations()
    const steps = splitStatements(renderMigration(first?.text ?? '', 'cut')).length
    for (const at of [2, Math.floor(steps / 2), steps - 1]) {
      await using db = await createDatabase({ migrated: false })
      const driver = createPgDriver({ url: db.url })
      let seen = 0
      const failing = Object.assign(Object.create(driver) as typeof driver, {
        transaction: async <T>(fn: (tx: never) => Promise<T>) =>
          await driver.transaction(async (tx) => {
            const counting = {
              query: async (text: string, values: readonly (string | null)[]) => {
                seen += 1
                if (seen === at + 4)
                  await tx.query('select pg_terminate_backend(pg_backend_pid())', []).catch(() => {})
                return await tx.query(text, values)
              },
            }
            return await fn(counting as never)
          }),
        query: driver.query.bind(driver),
      })
      try {
        await expect(migrate(failing, 'cut')).rejects.toMatchObject({
          code: expect.stringMatching(/OUTCOME_UNKNOWN|UNAVAILABLE/),
        })
        expect(
          await db.sql(`select to_regclass('cut.migration') as there, to_regclass('cut.job') as job`),
        ).toEqual([{ there: null, job: null }])
        expect(await migrate(driver, 'cut')).toMatchObject({ version: newest })
        expect(await db.sql(`select to_regclass('cut.jobs') is not null as whole`)).toEqual([{ whole: true }])
      } finally {
        await driver.close()
      }
    }
  })
})

describe('migrating a schema that is up to date', () => {
  it('waits for nobody, while every table is being changed', async () => {
    await using home = await openPgHome()
    await home.app.migrate()
    await home.transaction(async ({ query }) => {
      await query(`do $$ declare t regclass; begin
        for t in select oid::regclass from pg_class where relnamespace = 'holdfast'::regnamespace and relkind in ('r', 'p') loop
          execute format('lock table %s in row exclusive mode', t);
        end loop; end $$`)
      const before = performance.now()
      expect(await home.app.migrate()).toEqual({ applied: [], version: newest })
      expect(performance.now() - before).toBeLessThan(5000)
    })
  })

  it('needs no right to make a schema, when it is there', async () => {
    await using db = await createDatabase({ migrated: false })
    const role = `limited_${db.name}`
    await db.sql(`create role ${role} login`)
    await db.sql(`create schema ready_made authorization ${role}`)
    const app = appOver(db.url.replace(/\/\/[^@]*@/, `//${role}@`), { schema: 'ready_made' })
    try {
      expect(await app.migrate()).toMatchObject({ version: newest })
      expect(await app.enqueue(note, 1)).toMatchObject({ status: 'created' })
    } finally {
      await app.close()
      await db.sql(`drop schema ready_made cascade`)
      await db.sql(`drop role ${role}`)
    }
  })

  it("bears the role's statement_timeout and lock_timeout", async () => {
    await using db = await createDatabase({ migrated: false })
    await db.sql(`alter database ${db.name} set statement_timeout = '200ms'`)
    await db.sql(`alter database ${db.name} set lock_timeout = '200ms'`)
    const apps = Array.from({ length: 6 }, () => appOver(db.url))
    try {
      const results = await Promise.all(apps.map(async (app) => await app.migrate()))
      expect(results.flatMap(({ applied }) => applied)).toHaveLength(newest)
    } finally {
      await Promise.all(apps.map(async (app) => await app.close()))
    }
  })
})

/** Row 45. */
describe('a schema that another release made', () => {
  const stored = (version: number, breaking: boolean) =>
    `insert into holdfast.migration (version, name, breaking) values (${version}, 'of a later release', ${breaking})`

  it('is worked with when it is newer and says that this is possible', async () => {
    await using home = await openPgHome()
    await home.sql(stored(newest + 1, false))
    expect(await home.app.migrate()).toEqual({ applied: [], version: newest + 1 })
    const { id } = await home.app.enqueue(note, 1)
    await home.work()
    expect(await home.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
    expect(await home.sql('select max(version) as v from holdfast.migration')).toEqual([{ v: newest + 1 }])
  })

  it('is refused before anything is claimed when it is newer and breaks this release', async () => {
    await using home = await openPgHome()
    const { id } = await home.app.enqueue(note, 1)
    await home.sql(stored(newest + 1, true))

    await expect(home.app.migrate()).rejects.toThrow(SchemaVersionError)
    await expect(home.app.worker().start()).rejects.toMatchObject({
      code: 'SCHEMA_VERSION',
      changed: 'nothing',
    })
    expect(await home.app.job(id).get()).toMatchObject({ state: 'available', attempts: 0 })
    expect(await home.sql('select from holdfast.worker')).toEqual([])
    expect(await home.sql('select max(version) as v from holdfast.migration')).toEqual([{ v: newest + 1 }])
  })

  it('is refused when it is older, and when it is not there', async () => {
    await using home = await openPgHome()
    await home.sql('delete from holdfast.migration where version = $1', [newest])
    await expect(home.app.worker().start()).rejects.toThrow(SchemaVersionError)
    const nowhere = appOver(home.url, { schema: 'nowhere' })
    await expect(nowhere.worker().start()).rejects.toThrow(SchemaVersionError)
    await expect(nowhere.enqueue(note, 1)).rejects.toThrow(SchemaVersionError)
    await expect(nowhere.enqueue(note, 1, { uniqueKey: 'k' })).rejects.toThrow(SchemaVersionError)
    await expect(nowhere.job('1').get()).rejects.toThrow(SchemaVersionError)
    await nowhere.close()
  })
})

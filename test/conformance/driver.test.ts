import { PGlite } from '@electric-sql/pglite'
import { afterAll, afterEach, describe, expect, it } from 'vitest'
import { createDriver } from '../../src/adapters/create-driver.ts'
import { createPgDriver } from '../../src/adapters/pg.ts'
import { createPgliteDriver } from '../../src/adapters/pglite.ts'
import type { Driver, Queryable } from '../../src/driver/driver.ts'
import { createDatabase } from '../support/database.ts'
import { withResolvers } from '../support/eventually.ts'
import { hostile } from './subjects/postgres-js.ts'

interface Opened {
  readonly driver: Driver
  /** Another driver on the same database; on PGlite over the same instance. */
  readonly another: () => Driver
}

const cleanups: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

async function openPg(): Promise<Opened> {
  const database = await createDatabase({ migrated: false })
  cleanups.push(() => database.drop())
  return opener(() => createPgDriver({ url: database.url }))
}

/** Over an instance whose parsers and transforms would spoil every answer. */
async function openPostgresJs(): Promise<Opened> {
  const database = await createDatabase({ migrated: false })
  cleanups.push(() => database.drop())
  const instance = hostile(database.url)
  cleanups.push(async () => await instance.end())
  return opener(() => createDriver(instance))
}

function opener(make: () => Driver): Opened {
  const another = (): Driver => {
    const driver = make()
    cleanups.push(() => driver.close())
    return driver
  }
  return { driver: another(), another }
}

let shared: PGlite | undefined

afterAll(async () => {
  await shared?.close()
})

/** One instance for all tests, since a new one takes seconds; what a test leaves in it is removed. */
async function openPglite(): Promise<Opened> {
  const instance = shared ?? new PGlite()
  shared = instance
  cleanups.push(() => instance.exec('drop table if exists note; reset all; unlisten *'))
  return opener(() => createPgliteDriver({ instance }))
}

async function withNotes(open: () => Promise<Opened>): Promise<Opened> {
  const opened = await open()
  await opened.driver.query('create table note (id int8 generated always as identity, body text unique)', [])
  return opened
}

async function bodies(db: Queryable): Promise<unknown[]> {
  return (await db.query('select body from note order by id', [])).map((row) => row['body'])
}

interface Heard {
  readonly up: Promise<void>
  readonly payload: Promise<string>
}

function hear(driver: Driver, channel: string): Heard {
  const up = withResolvers<void>()
  const payload = withResolvers<string>()
  driver.listen(channel, { onUp: () => up.resolve(), onNotify: payload.resolve, onDown: up.reject })
  return { up: up.promise, payload: payload.promise }
}

describe.each([
  ['pg', openPg],
  ['postgres-js', openPostgresJs],
  ['pglite', openPglite],
] as const)('%s', (kind, open) => {
  it('gives every column as the text PostgreSQL writes, or null', async () => {
    const { driver } = await open()
    const [row] = await driver.query(
      `select $1::text::int8 as big, $2::text::bool as yes, $3::text::json as data, null::text as nothing,
        array[1, 2]::int8[] as list, 'x'::text as body`,
      ['9007199254740993', 'true', '{"a": 1.0}'],
    )

    expect(row).toEqual({
      big: '9007199254740993',
      yes: 't',
      data: '{"a": 1.0}',
      nothing: null,
      list: '{1,2}',
      body: 'x',
    })
  })

  it('commits when the callback returns, and gives what it returned', async () => {
    const { driver } = await withNotes(open)

    const result = await driver.transaction(async (tx) => {
      await tx.query(`insert into note (body) values ('kept')`, [])
      return 7
    })

    expect(result).toBe(7)
    expect(await bodies(driver)).toEqual(['kept'])
  })

  it('rolls back when the callback throws, and throws the same', async () => {
    const { driver } = await withNotes(open)
    const thrown = new Error('mine')

    const running = driver.transaction(async (tx) => {
      await tx.query(`insert into note (body) values ('gone')`, [])
      throw thrown
    })

    await expect(running).rejects.toBe(thrown)
    expect(await bodies(driver)).toEqual([])
  })

  it('reports a commit that PostgreSQL turned into a rollback', async () => {
    const { driver } = await withNotes(open)

    const running = driver.transaction(async (tx) => {
      await tx.query(`insert into note (body) values ('gone')`, [])
      await tx.query('select 1 / 0', []).catch(() => {})
    })

    await expect(running).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED', changed: 'nothing' })
    expect(await bodies(driver)).toEqual([])
  })

  it('refuses statements in an aborted transaction with an error of its own', async () => {
    const { driver } = await open()

    const running = driver.transaction(async (tx) => {
      await tx.query('select 1 / 0', []).catch(() => {})
      await tx.query('select 1', [])
    })

    await expect(running).rejects.toMatchObject({ code: 'TRANSACTION_ABORTED' })
  })

  it('refuses a transaction that has ended', async () => {
    const { driver } = await open()
    const leaked = await driver.transaction(async (tx) => tx)

    await expect(leaked.query('select 1', [])).rejects.toMatchObject({ code: 'TRANSACTION_REQUIRED' })
  })

  it('runs transactions at read committed whatever the default is', async () => {
    const { driver, another } = await open()
    // PGlite keeps its connection, where the setting of a database has no effect any more.
    await driver.query(
      kind === 'pglite'
        ? `set default_transaction_isolation to 'serializable'`
        : `do $$ begin
            execute format('alter database %I set default_transaction_isolation to serializable', current_database());
          end $$`,
      [],
    )

    const [row] = await another().transaction(
      async (tx) => await tx.query(`select current_setting('transaction_isolation') as level`, []),
    )

    expect(row).toEqual({ level: 'read committed' })
  })

  it('tells SQLSTATE and operation of a refused statement, and keeps the cause', async () => {
    const { driver } = await withNotes(open)
    await driver.query(`insert into note (body) values ('once')`, [])

    const again = driver.query('insert into note (body) values ($1::text)', ['once'], {
      operation: 'write_note',
    })

    await expect(again).rejects.toMatchObject({
      code: 'DATABASE',
      sqlState: '23505',
      operation: 'write_note',
    })
    await expect(again).rejects.toHaveProperty('cause.code', '23505')
  })

  it('names the schema whose tables are missing', async () => {
    const { driver } = await open()

    const asked = driver.query('select * from holdfast.job', [], { schema: 'holdfast' })

    await expect(asked).rejects.toMatchObject({
      code: 'SCHEMA_VERSION',
      schema: 'holdfast',
      found: undefined,
    })
  })

  it('runs a named statement again and again', async () => {
    const { driver } = await open()

    for (const value of ['a', 'b', 'c']) {
      const rows = await driver.query('select $1::text as body', [value], { name: 'echo' })
      expect(rows).toEqual([{ body: value }])
    }
  })

  it('answers statements of a session in order, many at once', async () => {
    const { driver } = await open()
    const session = await driver.session()

    const rows = await Promise.all(
      Array.from(
        { length: 20 },
        async (_, index) => await session.query('select $1::text as n', [`${index}`]),
      ),
    )

    expect(rows.flat().map((row) => Number(row['n']))).toEqual(
      Array.from({ length: 20 }, (_, index) => index),
    )
    await session.release()
    await expect(session.query('select 1', [])).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('hears what is notified from elsewhere', async () => {
    const { driver, another } = await open()
    const channel = 'Holdfast "x" é'.replaceAll('"', '')
    const heard = hear(driver, channel)
    await heard.up

    await another().query('select pg_notify($1::text, $2::text)', [channel, 'ready'])

    expect(await heard.payload).toBe('ready')
  })

  it('notifies with the commit', async () => {
    const { driver, another } = await open()
    const heard = hear(driver, 'ch')
    await heard.up

    await another().transaction(async (tx) => await tx.query(`select pg_notify('ch', 'ready')`, []))

    expect(await heard.payload).toBe('ready')
  })

  it('outlives a listener whose callback throws', async () => {
    const { driver } = await open()
    const heard = withResolvers<void>()
    const listener = driver.listen('ch', {
      onUp: () => {
        heard.resolve()
        throw new Error('mine')
      },
      onNotify: () => {},
      onDown: () => {},
    })
    await heard.promise

    expect(listener.up).toBe(true)
    await listener.close()
    expect(listener.up).toBe(false)
  })

  it('refuses everything once closed, and closes twice', async () => {
    const { driver } = await open()
    await driver.query('select 1', [])
    await driver.close()
    await driver.close()

    await expect(driver.query('select 1', [])).rejects.toMatchObject({ code: 'CLOSED' })
    await expect(driver.transaction(async () => {})).rejects.toMatchObject({ code: 'CLOSED' })
    await expect(driver.session()).rejects.toMatchObject({ code: 'CLOSED' })
  })

  it('says what kind it is', async () => {
    const { driver } = await open()

    expect(driver.kind).toBe(kind)
    expect(driver.singleConnection).toBe(kind === 'pglite')
    expect(() => structuredClone(driver.connectionConfig())).not.toThrow()
  })
})

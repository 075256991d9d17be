import pg from 'pg'
import { afterEach, describe, expect, it } from 'vitest'
import { createPgDriver } from '../../src/adapters/pg.ts'
import { PgConnection } from '../../src/adapters/pg-connection.ts'
import { startPgListener } from '../../src/adapters/pg-listener.ts'
import type { Driver } from '../../src/driver/driver.ts'
import { createDatabase, openPool, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { type Proxy, startProxy } from '../support/proxy.ts'

const cleanups: (() => Promise<unknown>)[] = []

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup()
})

interface Opened {
  readonly database: TestDatabase
  readonly driver: Driver
  readonly proxy: Proxy
}

/** A driver that reaches its database by way of a proxy. */
async function open(): Promise<Opened> {
  const database = await createDatabase({ migrated: false })
  cleanups.push(() => database.drop())
  await database.sql('create table note (body text)')
  const proxy = await startProxy(database.url)
  cleanups.push(() => proxy.close())
  const driver = createPgDriver({ url: proxy.url(), applicationName: 'driver test' })
  cleanups.push(() => driver.close())
  return { database, driver, proxy }
}

function watch(driver: Driver): { log: string[]; close: () => Promise<void> } {
  const log: string[] = []
  const listener = driver.listen('ch', {
    onUp: () => log.push('up'),
    onDown: () => log.push('down'),
    onNotify: (payload) => log.push(payload),
  })
  return { log, close: async () => await listener.close() }
}

async function endBackends({ database }: Opened): Promise<void> {
  await database.sql(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'driver test'`,
  )
}

describe('deadlines', () => {
  it('gives up a statement, tells that its outcome is unknown, and goes on', async () => {
    const { driver } = await open()

    const slow = driver.query('select pg_sleep(20)', [], { deadlineMs: 150, operation: 'slow' })

    await expect(slow).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', operation: 'slow' })
    await expect(driver.query('select 1 as n', [])).resolves.toEqual([{ n: '1' }])
  })

  it('calls a repeatable one unavailable, and a session goes on', async () => {
    const { driver } = await open()
    const session = await driver.session()

    const slow = session.query('select pg_sleep(20)', [], { deadlineMs: 150, repeatable: true })

    await expect(slow).rejects.toMatchObject({ code: 'UNAVAILABLE', changed: 'nothing' })
    await expect(session.query('select 1 as n', [])).resolves.toEqual([{ n: '1' }])
    await session.release()
  })

  it('notices a server that has gone silent', async () => {
    const { driver, proxy } = await open()
    await driver.query('select 1', [])
    proxy.freeze()

    await expect(driver.query('select 1', [], { deadlineMs: 150, repeatable: true })).rejects.toMatchObject({
      code: 'UNAVAILABLE',
    })
    proxy.pass()
    await expect(driver.query('select 1 as n', [])).resolves.toEqual([{ n: '1' }])
  })
})

describe('broken connections', () => {
  it('survives the end of idle ones', async () => {
    const opened = await open()
    const session = await opened.driver.session()
    await Promise.all([session.query('select 1', []), opened.driver.query('select 1', [])])

    await endBackends(opened)

    const answers = await eventually('both are back', async () => [
      ...(await session.query('select 1 as n', [])),
      ...(await opened.driver.query('select 2 as n', [])),
    ])
    expect(answers).toEqual([{ n: '1' }, { n: '2' }])
    await session.release()
  })

  it('changes nothing when a transaction breaks before its commit', async () => {
    const opened = await open()

    const running = opened.driver.transaction(async (tx) => {
      await tx.query(`insert into note values ('gone')`, [])
      await endBackends(opened)
      await tx.query('select 1', [])
    })

    await expect(running).rejects.toMatchObject({ code: 'UNAVAILABLE', changed: 'nothing' })
    expect(await opened.database.sql('select * from note')).toEqual([])
  })

  it('reports a commit whose answer was lost as unknown', async () => {
    const { database, driver, proxy } = await open()
    const hit = proxy.dropAnswer(/^commit/)

    const running = driver.transaction(async (tx) => await tx.query(`insert into note values ('kept')`, []))

    await expect(running).rejects.toMatchObject({
      code: 'OUTCOME_UNKNOWN',
      changed: 'unknown',
      operation: 'commit',
    })
    await hit
    expect(await database.sql('select body from note')).toEqual([{ body: 'kept' }])
  })

  it('is unavailable while nobody answers, without a secret in the error', async () => {
    const driver = createPgDriver({ url: 'postgres://u:S3cret@127.0.0.1:1/db' })
    cleanups.push(() => driver.close())

    const error: unknown = await driver.query('select 1', []).catch((thrown: unknown) => thrown)

    expect(error).toMatchObject({ code: 'UNAVAILABLE' })
    expect(String((error as Error).stack)).not.toContain('S3cret')
  })
})

describe('listening', () => {
  it('comes back after its connection was ended, and says so', async () => {
    const opened = await open()
    const { log, close } = watch(opened.driver)
    await eventually('up', () => log.includes('up'))

    await endBackends(opened)

    await eventually('up again', () => log.join() === 'up,down,up')
    await opened.database.sql(`select pg_notify('ch', 'ready')`)
    await eventually('heard', () => log.includes('ready'))
    expect(log).toEqual(['up', 'down', 'up', 'ready'])
    await close()
  })

  it('notices a frozen connection by itself', async () => {
    const { database, proxy } = await open()
    const log: string[] = []
    const listener = startPgListener({
      channel: 'ch',
      checkEveryMs: 50,
      checkDeadlineMs: 200,
      open: async () => {
        const client = new pg.Client(proxy.url())
        const connection = new PgConnection(client)
        await client.connect()
        return connection
      },
      events: {
        onUp: () => log.push('up'),
        onDown: () => log.push('down'),
        onNotify: (note) => log.push(note),
      },
    })
    await eventually('up', () => log.includes('up'))
    proxy.freeze()

    await eventually('down', () => log.includes('down'))
    proxy.pass()
    await eventually('up again', () => log.at(-1) === 'up')
    await database.sql(`select pg_notify('ch', 'ready')`)
    await eventually('heard', () => log.includes('ready'))
    await listener.close()
    expect(log.filter((entry) => entry !== 'down')).toEqual(['up', 'up', 'ready'])
  })

  it('is never up behind a transaction pooler, where nothing would be heard', async () => {
    const { database } = await open()
    const driver = createPgDriver({ url: database.url, pooler: true })
    cleanups.push(() => driver.close())

    expect(driver.listen('ch', { onUp() {}, onDown() {}, onNotify() {} }).up).toBe(false)
  })

  it('closes at once while the server cannot be reached', async () => {
    const { driver, proxy } = await open()
    proxy.freeze()
    const { close } = watch(driver)

    const started = performance.now()
    await close()

    expect(performance.now() - started).toBeLessThan(1000)
  })
})

describe('closing', () => {
  it('leaves no connection, whatever was open', async () => {
    const { database, driver } = await open()
    const session = await driver.session()
    await session.query('select 1', [])
    const { log } = watch(driver)
    await eventually('up', () => log.includes('up'))
    const slow = driver.query('select pg_sleep(20)', [])
    slow.catch(() => {})

    const started = performance.now()
    await driver.close()

    expect(performance.now() - started).toBeLessThan(4000)
    await expect(slow).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
    await eventually('no idle backend', async () => {
      const rows = await database.sql(
        `select from pg_stat_activity where datname = current_database() and application_name = 'driver test' and state <> 'active'`,
      )
      return rows.length === 0
    })
  })
})

describe("a user's own pool", () => {
  it('is used whatever parsers it has, and is not ended', async () => {
    const { database } = await open()
    const types = { getTypeParser: () => () => 'parsed' }
    const pool = openPool({ connectionString: database.url, max: 3, types })
    cleanups.push(() => pool.end())
    pool.on('error', () => {})
    const driver = createPgDriver({ pool })
    const session = await driver.session()
    const { log } = watch(driver)
    await eventually('up', () => log.includes('up'))

    await expect(session.query('select 7::int8 as n', [])).resolves.toEqual([{ n: '7' }])
    await expect(driver.query('select 8::int8 as n', [])).resolves.toEqual([{ n: '8' }])
    await driver.close()

    expect((await pool.query('select 1 as n')).rows).toEqual([{ n: 'parsed' }])
    await eventually('every client is back', () => pool.idleCount === pool.totalCount)
  })
})

import { PGlite } from '@electric-sql/pglite'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createPgliteDriver } from './pglite.ts'
import { recognise } from './recognise.ts'
import { markStatement, sendMarked } from './transaction-mark.ts'

const db = new PGlite()

// Takes seconds, and many on a busy machine.
beforeAll(async () => await db.waitReady, 60_000)

afterAll(async () => {
  await db.close()
})

function pgClient(status: string | null): object {
  return {
    escapeIdentifier: () => '',
    getTransactionStatus: () => status,
    query: async ({ text, values }: { text: string; values: string[] }) => ({ rows: [{ text, values }] }),
  }
}

describe('recognising a transaction', () => {
  it('takes a transaction of PGlite, and gives its columns as text', async () => {
    const rows = await db.transaction(async (tx) => await recognise(tx).query('select 5::int8 as n', []))

    expect(rows).toEqual([{ n: '5' }])
  })

  it('takes a client of pg with an open transaction', async () => {
    expect(await recognise(pgClient('T')).query('select $1', ['x'])).toEqual([
      { text: 'select $1', values: ['x'] },
    ])
  })

  it('takes the transaction of a driver of ours', async () => {
    const rows = await createPgliteDriver({ instance: db }).transaction(
      async (tx) => await recognise(tx).query('select 1 as n', []),
    )

    expect(rows).toEqual([{ n: '1' }])
  })

  it('refuses an aborted one', () => {
    expect(() => recognise(pgClient('E'))).toThrow(expect.objectContaining({ code: 'TRANSACTION_ABORTED' }))
  })

  it('refuses one that has ended', async () => {
    const ended = await db.transaction(async (tx) => tx)

    expect(() => recognise(ended)).toThrow(expect.objectContaining({ code: 'TRANSACTION_REQUIRED' }))
  })

  it.each<[string, () => unknown]>([
    ['a client without a transaction', () => pgClient('I')],
    ['a pool', () => new pg.Pool()],
    ['an unconnected client', () => new pg.Client()],
    ['a PGlite instance', () => db],
    ['nothing', () => undefined],
    ['null', () => null],
    ['text', () => 'tx'],
    ['anything else', () => ({ query: () => {} })],
  ])('refuses %s', (_, make) => {
    expect(() => recognise(make())).toThrow(expect.objectContaining({ code: 'TRANSACTION_REQUIRED' }))
  })
})

describe('a statement that asks for its mark', () => {
  it('asks where it reads its first parameter, whatever the names around it are', () => {
    const { text: marked } = markStatement(
      `select "a $1::text" /* $1::text */, '$1::text', f($1::text::json, $2::text, $1::text)`,
      ['a', 'b'],
    ).marked

    expect(marked).toMatch(
      /^select "a \$1::text" \/\* \$1::text \*\/, '\$1::text', f\(\(case when .* end\)::json, \$2::text, \$1::text\)$/,
    )
    expect(marked.match(/\$3::text/g)).toHaveLength(1)
    expect(() => markStatement('select 1', [])).toThrow(/fault of ours/)
  })

  it('runs in a transaction, and nowhere else', async () => {
    await db.exec('create table marked (body text)')
    const text = 'insert into marked values ($1::text) returning body'
    const send = (on: Pick<PGlite, 'query'>) => async (sent: string, values: readonly (string | null)[]) =>
      (await on.query<Record<string, unknown>>(sent, [...values])).rows

    const rows = await db.transaction(async (tx) => await sendMarked(send(tx), text, ['in']))
    const outside = sendMarked(send(db), text, ['out'])

    expect(rows).toEqual([{ body: 'in' }])
    await expect(outside).rejects.toMatchObject({ code: 'TRANSACTION_REQUIRED' })
    expect((await db.query('select body from marked')).rows).toEqual([{ body: 'in' }])
  })
})

describe('PGlite', () => {
  it('refuses a call without tx inside a transaction, whoever opened it', async () => {
    const driver = createPgliteDriver({ instance: db })
    await driver.query('select 1', [])

    await expect(driver.transaction(async () => await driver.query('select 1', []))).rejects.toMatchObject({
      code: 'OUTSIDE_TRANSACTION',
    })
    await expect(db.transaction(async () => await driver.query('select 1', []))).rejects.toMatchObject({
      code: 'OUTSIDE_TRANSACTION',
    })
    await expect(driver.query('select 1 as n', [])).resolves.toEqual([{ n: '1' }])
  })

  it('keeps parameters off its errors', async () => {
    const driver = createPgliteDriver({ instance: db })
    const failing = driver.query('select $1::text::int4', ['S3cret'])

    await expect(failing).rejects.toMatchObject({ code: 'DATABASE', sqlState: '22P02' })
    await expect(failing).rejects.not.toHaveProperty('cause.params')
  })
})

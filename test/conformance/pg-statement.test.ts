import pg from 'pg'
import { expect, it } from 'vitest'
import { createPgDriver } from '../../src/adapters/pg.ts'
import { querySubmitted } from '../../src/adapters/pg-statement.ts'
import { createDatabase } from '../support/database.ts'

async function connected() {
  const db = await createDatabase({ migrated: false })
  const client = new pg.Client(db.url)
  await client.connect()
  const described: string[] = []
  client.connection.on('message', ({ name }: { readonly name: string }) => {
    if (name === 'rowDescription' || name === 'noData' || name === 'parseComplete') described.push(name)
  })
  // pg tells messages only to who asks for them before.
  ;(client.connection as unknown as { _emitMessage: boolean })._emitMessage = true
  return {
    db,
    client,
    described,
    async [Symbol.asyncDispose]() {
      await client.end()
      await db.drop()
    },
  }
}

it('a named statement is parsed and described once on a connection, and gives its rows by their columns', async () => {
  await using opened = await connected()
  const { client, described } = opened
  const text = 'select $1::text as one, $2::text as other from generate_series(1, 2)'
  const first = await querySubmitted(client, text, ['ä"\n', null], 'named')
  expect(first).toEqual([
    { one: 'ä"\n', other: null },
    { one: 'ä"\n', other: null },
  ])
  expect(await querySubmitted(client, text, [null, ''], 'named')).toEqual([
    { one: null, other: '' },
    { one: null, other: '' },
  ])
  expect(described).toEqual(['parseComplete', 'rowDescription'])
})

it('statements without a name, and those without rows, are answered too', async () => {
  await using opened = await connected()
  const { client, described } = opened
  expect(await querySubmitted(client, 'create table t (id int primary key)', [])).toEqual([])
  for (const id of ['1', '2'])
    expect(await querySubmitted(client, 'insert into t values ($1::text::int)', [id], 'insert')).toEqual([])
  expect(described).toEqual(['parseComplete', 'noData', 'parseComplete', 'noData'])
  expect(await querySubmitted(client, 'select id::text from t order by 1', [])).toEqual([
    { id: '1' },
    { id: '2' },
  ])
  expect(await querySubmitted(client, '', [])).toEqual([])
})

it('what PostgreSQL refuses is an error, at parsing, binding or running, and the next statement is answered', async () => {
  await using opened = await connected()
  const { client } = opened
  const divide = 'select (1 / $1::text::int)::text as n'
  await expect(querySubmitted(client, 'selct 1', [], 'typo')).rejects.toMatchObject({ code: '42601' })
  await expect(querySubmitted(client, divide, ['x'], 'divide')).rejects.toMatchObject({ code: '22P02' })
  await expect(querySubmitted(client, divide, ['0'], 'divide')).rejects.toMatchObject({ code: '22012' })
  await expect(querySubmitted(client, divide, [], 'divide')).rejects.toMatchObject({ code: '08P01' })
  expect(await querySubmitted(client, divide, ['1'], 'divide')).toEqual([{ n: '1' }])
  await client.query('create table copied (n int)')
  await expect(querySubmitted(client, 'copy copied from stdin', [])).rejects.toMatchObject({ code: '57014' })
  expect(await querySubmitted(client, 'select 1::text as n', [])).toEqual([{ n: '1' }])
})

it('a connection that breaks under a statement ends it', async () => {
  await using opened = await connected()
  const { client, db } = opened
  client.on('error', () => {})
  const [row] = await querySubmitted(client, 'select pg_backend_pid()::text as pid', [])
  const broken = querySubmitted(client, 'select pg_sleep(60)', [], 'sleep').catch((error: unknown) => error)
  await db.sql('select pg_terminate_backend($1)', [row?.['pid']])
  expect(await broken).toBeInstanceOf(Error)
  await expect(querySubmitted(client, 'select 1', [])).rejects.toBeInstanceOf(Error)
})

it('a table that changes under a prepared statement is read with its new columns', async () => {
  await using db = await createDatabase({ migrated: false })
  const driver = createPgDriver({ url: db.url, maxConnections: 1 })
  await db.sql('create table t as select 1 as n')
  const read = async () => await driver.query('select * from t', [], { name: 'read' })
  expect(await read()).toEqual([{ n: '1' }])
  await db.sql('alter table t add column m int default 2')
  expect(await read()).toEqual([{ n: '1', m: '2' }])
  await db.sql('alter table t drop column n')
  expect(await read()).toEqual([{ m: '2' }])
  await driver.close()
})

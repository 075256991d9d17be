import postgres from 'postgres'
import { expect, it } from 'vitest'
import { recognise } from '../../src/adapters/recognise.ts'
import { createDatabase } from '../support/database.ts'

const INSERT = 'insert into note values ($1::text) returning body'

async function openNotes() {
  const database = await createDatabase({ migrated: false })
  await database.sql('create table note (body text)')
  const sql = postgres(database.url, { max: 1, onnotice: () => {} })
  return {
    sql,
    bodies: async () => (await database.sql('select body from note')).map(({ body }) => body),
    async [Symbol.asyncDispose]() {
      await sql.end({ timeout: 1 })
      await database.drop()
    },
  }
}

it('gives up a transaction of postgres.js that has ended while its connection is busy', async () => {
  await using notes = await openNotes()
  const leaked: unknown[] = []
  await notes.sql.begin(async (tx) => void leaked.push(tx))
  const busy = notes.sql`select pg_sleep(1), ${'x'}::text`.execute()
  await Promise.resolve()

  const late = recognise(leaked[0]).query(INSERT, ['late'], { deadlineMs: 200 })

  await expect(late).rejects.toMatchObject({ code: 'TRANSACTION_REQUIRED' })
  await busy
  await notes.sql`select 1`
  expect(await notes.bodies()).toEqual([])
})

it('leaves a transaction of postgres.js as it is when it gave up a statement that had to wait in it', async () => {
  await using notes = await openNotes()
  let refused: unknown
  const running = notes.sql.begin(async (tx) => {
    const slow = tx`select pg_sleep(0.5), ${'x'}::text`.execute()
    refused = await recognise(tx)
      .query(INSERT, ['given up'], { deadlineMs: 100 })
      .catch((error: unknown) => error)
    await slow
    await tx`insert into note values ('kept')`
  })

  await running
  expect(refused).toMatchObject({ code: 'TRANSACTION_REQUIRED', changed: 'nothing' })
  expect(await notes.bodies()).toEqual(['kept'])
})

import { describe, expect, it } from 'vitest'
import { defineJob, OutsideTransactionError } from '../../src/index.ts'
import { anything, appOver, note } from '../integration/homes.ts'
import { createDatabase } from '../support/database.ts'
import { withResolvers } from '../support/eventually.ts'
import { hostile } from './subjects/postgres-js.ts'

/** An application whose `database` is an instance of postgres.js. */
async function openApp(options: Parameters<typeof appOver>[1] = {}) {
  const database = await createDatabase()
  const sql = hostile(database.url)
  const app = appOver(sql, options)
  return {
    app,
    sql,
    database,
    async [Symbol.asyncDispose]() {
      await app.close()
      await sql.end()
      await database.drop()
    },
  }
}

describe('an application over an instance of postgres.js', () => {
  it('runs jobs, woken by their enqueue, with heartbeats from a thread', async () => {
    await using home = await openApp({ maxPollMs: 60_000 })
    const { app } = home
    await app.worker().start()
    const driver = app.internals.driver
    expect(driver.kind).toBe('postgres-js')
    expect(driver.connectionConfig()).toMatchObject([{ application_name: 'holdfast test' }])

    const { id } = await app.enqueue(note, { text: 'Zoë' })

    expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
      state: 'completed',
      result: { text: 'Zoë' },
    })
  })

  it('neither uses the instance nor ends it', async () => {
    await using home = await openApp()
    await home.app.enqueue(note, 1)
    const [own] = await home.database.sql(
      `select count(*)::int as n from pg_stat_activity where datname = current_database() and application_name = 'postgres.js'`,
    )
    await home.app.close()

    expect(own).toEqual({ n: 0 })
    expect(await home.sql`select 1 as n`).toHaveLength(1)
  })

  it('joins the transactions of the instance', async () => {
    await using home = await openApp()

    await home.sql.begin(async (tx) => await home.app.enqueue(note, 'kept', { tx }))
    const thrown = new Error('mine')
    const running = home.sql.begin(async (tx) => {
      await home.app.enqueue(note, 'gone', { tx })
      throw thrown
    })

    await expect(running).rejects.toBe(thrown)
    expect(await home.database.sql('select input::text from holdfast.job')).toEqual([{ input: '"kept"' }])
  })

  it('refuses a call without tx inside app.transaction, and goes on', async () => {
    await using home = await openApp()
    const { app } = home

    await app.transaction(async (tx) => {
      await tx.query('create table trail (step int)')
      for (const call of [
        async () => await app.enqueue(note, 1),
        async () => await app.enqueue(note, 1, { uniqueKey: 'k' }),
        async () => await app.enqueueMany([{ job: note }]),
        async () => await app.transaction(async () => {}),
      ]) {
        await expect(call()).rejects.toThrow(OutsideTransactionError)
      }
      await tx.enqueue(note, 'inside')
    })

    expect(await home.database.sql('select input::text from holdfast.job')).toEqual([{ input: '"inside"' }])
  })

  it('keeps handlers apart from the connections of the instance', async () => {
    const held = withResolvers<void>()
    const hold = defineJob({
      name: 'hold',
      input: anything(),
      idempotent: true,
      handler: async () => await held.promise,
    })
    await using home = await openApp({ jobs: [hold] })
    // All connections of the instance are taken, as by a busy application.
    const taken = await Promise.all(Array.from({ length: 4 }, async () => await home.sql.reserve()))
    await home.app.worker().start()

    const { id } = await home.app.enqueue(hold, 1)
    held.resolve()

    expect(await home.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
    for (const connection of taken) connection.release()
  })
})

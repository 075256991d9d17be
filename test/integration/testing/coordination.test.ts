import { expect, it } from 'vitest'
import { z } from 'zod'
import { defineApp, defineJob } from '../../../src/index.ts'
import { createTestApp, everyCrashPoint, type TestApp } from '../../../src/testing/testing.ts'
import { createDatabase } from '../../support/database.ts'
import { appOf } from './jobs.ts'

/** Counts invoices by every means that a handler coordinates by, once each. */
const count = defineJob({
  name: 'invoices.count',
  input: z.object({ id: z.string() }),
  idempotent: true,
  async handler(ctx, { id }) {
    await using lock = await ctx.locks.acquire(`invoices/${id}`, { waitMs: 1000 })
    if (!lock.held) return 'locked'
    const done = await ctx.keys.get(`invoices/${id}/number`)
    if (done !== undefined) return done.text()
    const number = await ctx.sequences.next('invoices')
    await ctx.script('set @key @number', { key: `invoices/${id}/number`, number: String(number) })
    return String(number)
  },
})

it('a handler’s locks, keys, sequences and scripts are those of the application that runs it', async () => {
  await using db = await createDatabase()
  const app = defineApp({ name: 'shop', database: db.url, jobs: [count], queues: { default: {} } })
  await app.sequences.create('invoices')
  await app.worker().start()
  const { id } = await app.enqueue(count, { id: '7' })
  expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed', result: '1' })
  expect((await app.keys.get('invoices/7/number'))?.text()).toBe('1')
  await app.close()
})

it('in a test they are those of the test, whatever application the job is of', async () => {
  const app = appOf([count])
  await using t = await createTestApp(app)
  await t.app.sequences.create('invoices')
  for (const id of ['7', '8', '7']) await t.enqueue(count, { id })
  await t.drain()
  expect((await t.app.keys.get('invoices/7/number'))?.text()).toBe('1')
  expect((await t.app.keys.get('invoices/8/number'))?.text()).toBe('2')
  // The clock of the test is that of the locks, too: all were released.
  expect((await t.app.locks.list()).locks).toEqual([])
})

const observe = async ({ t }: { readonly t: TestApp }) => ({
  hits: (await t.app.keys.get('hits'))?.text(),
})

it('each call of theirs is a step that a handler may die at', async () => {
  const naive = defineJob({
    name: 'naive',
    input: z.null(),
    idempotent: true,
    handler: async (ctx) => {
      await ctx.keys.increment('hits', 1n)
    },
  })
  const report = await everyCrashPoint(appOf([naive]), naive, null, { observe })
  expect(report.points.map(({ name, ok }) => [name, ok])).toEqual([
    ['keys.increment, before it', true],
    ['keys.increment done', false],
    ['handler over, before its end is recorded', false],
  ])

  const committed = defineJob({
    name: 'committed',
    input: z.null(),
    idempotent: true,
    handler: async (ctx) => {
      await ctx.commit(async (tx) => {
        await ctx.keys.increment('hits', 1n, { tx })
      })
    },
  })
  const mended = await everyCrashPoint(appOf([committed]), committed, null, { observe })
  expect(mended.points.map(({ ok }) => ok)).not.toContain(false)
  expect(mended.points.map(({ name }) => name).join()).not.toContain('keys')
})

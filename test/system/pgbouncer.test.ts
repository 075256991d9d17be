import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { defineJob } from '../../src/index.ts'
import { anything, appOver, inTransaction, note } from '../integration/homes.ts'
import { createDatabase } from '../support/database.ts'
import { startPgbouncer } from './pgbouncer.ts'

/** Row 49: behind a pooler that changes the server's connection after each transaction. */
describe('behind pgbouncer in transaction pooling, with pooler: true', () => {
  it('runs two hundred jobs once each, with retries, keys, transactions, schedules and cancels', async () => {
    await using db = await createDatabase({ migrated: false })
    await using pooler = await startPgbouncer(db.url)
    const runs = new Map<number, number>()
    const work = defineJob({
      name: 'work',
      input: anything<number>(),
      effects: ['enqueue:test.note'],
      idempotent: true,
      retry: { type: 'fixed', delayMs: 5 },
      handler: async (ctx, n) => {
        runs.set(n, (runs.get(n) ?? 0) + 1)
        if (n % 20 === 0 && ctx.job.attempt === 1) throw new Error('once')
        if (n % 25 === 1) await ctx.enqueue(note, n)
        return n
      },
    })
    const app = appOver(pooler.url, {
      jobs: [work],
      pooler: true,
      leaseMs: 5000,
      queues: { default: { concurrency: 20 } },
    })
    const errors: unknown[] = []
    app.events.on('worker.error', ({ error }) => void errors.push(error))
    try {
      await app.migrate()
      await app.worker().start()
      const many = await app.enqueueMany(Array.from({ length: 100 }, (_, i) => ({ job: work, input: i })))
      const singles = await Promise.all(
        Array.from({ length: 50 }, async (_, i) => await app.enqueue(work, 100 + i)),
      )
      const keyed = await Promise.all(
        Array.from(
          { length: 25 },
          async (_, i) => await app.enqueue(work, 150 + i, { uniqueKey: `k${i}`, idempotencyKey: `i${i}` }),
        ),
      )
      const client = new Client({ connectionString: pooler.url })
      await client.connect()
      const own: { id: string }[] = []
      for (let i = 0; i < 10; i += 1)
        own.push(await inTransaction(client, async ({ tx }) => await app.enqueue(work, 175 + i, { tx })))
      await client.end()
      const ours = await Promise.all(
        Array.from(
          { length: 15 },
          async (_, i) =>
            await app.transaction(async (tx) => await tx.enqueue(work, 185 + i, { delayMs: i })),
        ),
      )
      const all = [...many, ...singles, ...keyed, ...own, ...ours]
      const ends = await Promise.all(all.map(async ({ id }) => await app.job(id).wait({ timeoutMs: 25_000 })))

      expect(all).toHaveLength(200)
      expect(ends.map((end) => end?.state)).toEqual(all.map(() => 'completed'))
      expect(ends.map((end) => end?.result)).toEqual(Array.from({ length: 200 }, (_, i) => i))
      expect([...runs].filter(([n, count]) => count !== (n % 20 === 0 ? 2 : 1))).toEqual([])
      expect(errors).toEqual([])

      const cancelled = await app.enqueue(work, 1, { delayMs: 1e6 })
      expect(await app.job(cancelled.id).cancel()).toEqual({ status: 'cancelled' })
    } finally {
      await app.close()
    }
    expect(pooler.log()).not.toMatch(/prepared statement|unsupported/i)
    expect(await db.sql('select from holdfast.lease')).toEqual([])
    expect(
      await db.sql(
        `select from pg_locks where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())`,
      ),
    ).toEqual([])
  })

  it('leaves the settings of the shared connections as they were', async () => {
    await using db = await createDatabase()
    await using pooler = await startPgbouncer(db.url, 1)
    const app = appOver(pooler.url, { pooler: true })
    const client = new Client({ connectionString: pooler.url })
    await client.connect()
    const names = [
      'default_transaction_isolation',
      'search_path',
      'enable_seqscan',
      'plan_cache_mode',
      'statement_timeout',
      'application_name',
    ]
    const read = async () =>
      (
        await client.query(
          `select name, setting from pg_settings where name = any ($1) and name <> 'application_name' order by 1`,
          [names],
        )
      ).rows
    try {
      const before = await read()
      await app.worker().start()
      const { id } = await app.enqueue(note, 1, { uniqueKey: 'k' })
      expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
      expect(await read()).toEqual(before)
      const { rows } = await client.query(
        'select name from pg_prepared_statements union all select * from pg_listening_channels()',
      )
      expect(rows).toEqual([])
    } finally {
      await client.end()
      await app.close()
    }
  })

  it('tells that the pooler is gone, and ends all the same', async () => {
    await using db = await createDatabase()
    const pooler = await startPgbouncer(db.url)
    const app = appOver(pooler.url, { pooler: true })
    await app.worker().start()
    const first = await app.enqueue(note, 1)
    await app.job(first.id).wait({ timeoutMs: 20_000 })
    await pooler[Symbol.asyncDispose]()
    await expect(app.enqueue(note, 2)).rejects.toMatchObject({
      code: expect.stringMatching(/UNAVAILABLE|OUTCOME_UNKNOWN/),
    })
    await app.close()
  })
})

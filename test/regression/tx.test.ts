import { AsyncResource } from 'node:async_hooks'
import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { OutsideTransactionError } from '../../src/index.ts'
import { claimJobs } from '../../src/jobs/sql/claim-jobs.ts'
import {
  appOver,
  describeEachHome,
  enqueueBySql,
  inTransaction,
  note,
  openPgHome,
  openPgliteHome,
} from '../integration/homes.ts'

/** Made here, where no transaction is open. */
const root = new AsyncResource('test')
const TRAIL = 'create table trail (step int)'

/** Row 30. */
describeEachHome("a duplicate in the caller's transaction", ({ open }) => {
  it('is an ordinary answer: what comes before and after it is committed', async () => {
    await using home = await open()
    await home.app.migrate()
    await home.sql(TRAIL)
    const held = await home.app.enqueue(note, 1, { uniqueKey: 'k', idempotencyKey: 'i', delayMs: 1e6 })

    await home.transaction(async ({ tx, query }) => {
      await query('insert into trail values (1)')
      expect(await home.app.enqueue(note, 1, { tx, uniqueKey: 'k' })).toEqual({
        id: held.id,
        status: 'existing',
      })
      expect(await home.app.enqueue(note, 1, { tx, idempotencyKey: 'i' })).toEqual(held)
      expect(await enqueueBySql(query, note.name, '1', { unique_key: 'k' })).toEqual({
        id: held.id,
        status: 'existing',
      })
      const many = await home.app.enqueueMany(
        [
          { job: note, uniqueKey: 'k' },
          { job: note, uniqueKey: 'new' },
          { job: note, uniqueKey: 'new' },
        ],
        { tx },
      )
      expect(many.map(({ status }) => status)).toEqual(['existing', 'created', 'existing'])
      await query('insert into trail values (2)')
    })

    expect(await home.sql('select step from trail order by step')).toEqual([{ step: 1 }, { step: 2 }])
    expect(await home.count()).toBe(2)
  })
})

/** Row 31. */
describe('a job of a transaction that is held open', () => {
  it('is run after the commit, and never after a rollback or the death of the client', async () => {
    await using home = await openPgHome()
    await home.work()
    const outcomes: Record<string, unknown> = {}
    for (const end of ['commit', 'rollback', 'kill']) {
      const client = new Client({ connectionString: home.url })
      client.on('error', () => {})
      await client.connect()
      await client.query('begin')
      const { id } = await home.app.enqueue(note, end, { tx: client })
      const beside = await home.app.enqueue(note, 'beside')
      await home.app.job(beside.id).wait({ timeoutMs: 20_000 })
      expect(await home.app.job(id).get()).toBeUndefined()

      if (end === 'kill') client.end().catch(() => {})
      else await client.query(end)
      const after = await home.app.enqueue(note, 'after')
      await home.app.job(after.id).wait({ timeoutMs: 20_000 })
      outcomes[end] =
        end === 'commit'
          ? (await home.app.job(id).wait({ timeoutMs: 20_000 }))?.state
          : await home.app.job(id).get()
      await client.end().catch(() => {})
    }
    expect(outcomes).toEqual({ commit: 'completed', rollback: undefined, kill: undefined })
  })
})

/** Row 32. */
describe('on PGlite a call inside a transaction that does not use it', () => {
  it.each(['ours', "the user's own"])(
    'is refused within moments, in %s, while a worker polls',
    async (whose) => {
      await using home = await openPgliteHome({ maxPollMs: 10 })
      await home.work()
      const { app } = home
      const calls: [string, () => Promise<unknown>][] = [
        ['enqueue', async () => await app.enqueue(note, 1)],
        ['keyed enqueue', async () => await app.enqueue(note, 1, { uniqueKey: 'k' })],
        ['enqueueMany', async () => await app.enqueueMany([{ job: note }])],
        ['job.get', async () => await app.job('1').get()],
        ['job.cancel', async () => await app.job('1').cancel()],
        ['transaction', async () => await app.transaction(async () => {})],
        ['migrate', async () => await app.migrate()],
      ]
      for (const [name, call] of calls) {
        const inside = async () => {
          await expect(call(), name).rejects.toThrow(OutsideTransactionError)
        }
        const before = performance.now()
        if (whose === 'ours') await app.transaction(inside)
        else await home.transaction(inside)
        expect(performance.now() - before, name).toBeLessThan(5000)
      }
      const next = await app.enqueue(note, 'next')
      expect(await app.job(next.id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
    },
  )

  it('is refused while other enqueues wait for the transaction, and those get through', async () => {
    await using home = await openPgliteHome()
    const before: Promise<unknown>[] = []
    await home.transaction(async ({ query }) => {
      await query('select 1')
      // Called from outside of the transaction, as another request of the process would.
      const outside = outsideOfAll(async () => await home.app.enqueue(note, 'from outside'))
      before.push(outside)
      await query('select 1')
      await expect(home.app.enqueue(note, 'from inside')).rejects.toThrow(OutsideTransactionError)
      before.push(outsideOfAll(async () => await home.app.enqueue(note, 'from outside, later')))
    })
    expect(await Promise.all(before)).toMatchObject([{ status: 'created' }, { status: 'created' }])
  })

  it('does not spoil enqueues of others in the same moment', async () => {
    await using home = await openPgliteHome()
    let outside: Promise<unknown> | undefined
    await home.transaction(async () => {
      const inside = home.app.enqueue(note, 'from inside')
      outside = outsideOfAll(async () => await home.app.enqueue(note, 'from outside'))
      await expect(inside).rejects.toThrow(OutsideTransactionError)
    })
    await expect(outside).resolves.toMatchObject({ status: 'created' })
  })
})

/** Row 33. */
describe('on PGlite a job that is due now', () => {
  it('is found by a claim in the same moment, a thousand times', async () => {
    await using home = await openPgliteHome()
    const { driver } = home.app.internals
    const text = claimJobs.statement('holdfast').text
    expect(text).toContain('claim_jobs')
    await home.sql(
      `insert into holdfast.worker (id, lease_ms, name, app, version, queues, jobs) values (1, 60000, 'w', 'a', '1', '[]', '[]')`,
    )
    for (let round = 0; round < 1000; round += 1) {
      const options = round % 3 === 0 ? {} : round % 3 === 1 ? { delayMs: 0 } : { runAt: new Date() }
      await home.app.enqueue(note, round, options)
      const due = await driver.query(
        `select (select count(*) from holdfast.ready) + (select count(*) from holdfast.scheduled where run_at <= clock_timestamp()) as n`,
        [],
      )
      expect(Number(due[0]?.['n']), `round ${round}`).toBe(round + 1)
    }
  })
})

/** Row 34. */
describe('bulk enqueues with the same keys in opposite order', () => {
  it('never deadlock, alone or inside transactions of their callers', async () => {
    await using home = await openPgHome()
    const keys = Array.from({ length: 100 }, (_, i) => `k${i + 1}`)
    const clients = await Promise.all(
      [0, 1].map(async () => {
        const client = new Client({ connectionString: home.url })
        await client.connect()
        return client
      }),
    )
    const apps = [appOver(home.url), appOver(home.url)]
    try {
      for (let round = 0; round < 50; round += 1) {
        const both = [keys, keys.toReversed()].map(async (order, side) => {
          const jobs = order.map((key) => ({
            job: note,
            input: `${round} ${key}`,
            uniqueKey: `${round} ${key}`,
            idempotencyKey: `${round} ${key}`,
            delayMs: 1e6,
          }))
          if (round % 2 === 0) return await apps[side]?.enqueueMany(jobs)
          return await inTransaction(
            clients[side] as Client,
            async ({ tx }) => await apps[side]?.enqueueMany(jobs, { tx }),
          )
        })
        const [forward, backward] = await Promise.all(both)
        expect(forward?.map(({ id }) => id)).toEqual(backward?.map(({ id }) => id).toReversed())
      }
      expect(await home.count()).toBe(50 * 100)
      expect(
        await home.sql(
          `select input #>> '{}' as input, unique_key from holdfast.job where input #>> '{}' <> unique_key`,
        ),
      ).toEqual([])
    } finally {
      await Promise.all([
        ...clients.map(async (client) => await client.end()),
        ...apps.map(async (app) => await app.close()),
      ])
    }
  })
})

/** Row 35: nothing of free length goes into a notification. */
describeEachHome('a payload of any size', ({ open }) => {
  it('is stored and announced: 7,990 bytes, 8,000, 8,010, a megabyte; more is refused by its size', async () => {
    await using home = await open()
    await home.work()
    for (const bytes of [7990, 8000, 8010, 1024 * 1024]) {
      const input = 'x'.repeat(bytes - 2)
      const { id } = await home.app.enqueue(note, input)
      expect(await home.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
        state: 'completed',
        result: input,
      })
    }
    await expect(home.app.enqueue(note, 'x'.repeat(5_000_000))).rejects.toMatchObject({
      code: 'TOO_LARGE',
      maxBytes: 1024 * 1024,
    })
  })
})

/** Runs `work` in no asynchronous context of the caller's. */
function outsideOfAll<T>(work: () => Promise<T>): Promise<T> {
  return root.runInAsyncScope(work)
}

import { describe, expect, it } from 'vitest'
import { createPgDriver } from '../../src/adapters/pg.ts'
import { EventHub } from '../../src/base/events.ts'
import { runOne } from '../../src/driver/operation.ts'
import { defineJob } from '../../src/index.ts'
import { completeInTransaction } from '../../src/jobs/sql/complete-in-transaction.ts'
import { fenceAttempt } from '../../src/jobs/sql/fence-attempt.ts'
import { rescueJobs } from '../../src/worker/maintenance/rescuer.ts'
import { anything } from '../faults/handlers.ts'
import { claim, databaseOf, enqueue, register } from '../faults/steps.ts'
import { describeEachApp } from '../integration/effects/each-app.ts'
import { createDatabase } from '../support/database.ts'
import { type AnyContext, everything } from '../support/everything.ts'

function job(handler: (ctx: AnyContext) => unknown, more: object = {}) {
  const options = { name: 'job', input: anything<null>(), idempotent: true, ...everything, ...more } as const
  return defineJob({ ...options, handler: handler as never })
}

const mayEnqueue = (name: string) => ({ effects: [...everything.effects, `enqueue:${name}`] })

const values = [[], [1, { a: 2 }], ['a'], 'hello', '', 0, -0, false, null, { a: '😀' }, '\\u0000', 1e21]

describeEachApp('payload by the doors of a handler', ({ open }) => {
  it('comes back deep-equal and of the same type: effect, tx.effect, checkpoint, commit, and at once as later', async () => {
    const seen: unknown[] = []
    const all = job(
      async (ctx) => {
        for (const [index, value] of values.entries()) {
          const key = `k${index}`
          const first = await ctx.effect('call:x', { key }, () => value)
          const again = await ctx.effect('call:x', { key }, () => 'called again')
          const twice = async () =>
            await ctx.transaction(async (tx) => await tx.effect('write:x', { key }, () => value))
          await ctx.checkpoint(value)
          seen.push([first, again, await twice(), await twice(), ctx.job.checkpoint])
        }
        await ctx.commit(() => values)
      },
      { maxAttempts: 1 },
    )
    await using opened = await open({ jobs: [all] })
    const { id } = await opened.app.enqueue(all, null)
    const end = await opened.app.job(id).wait({ timeoutMs: 20_000 })

    const stored: readonly unknown[] = values
    expect(end).toMatchObject({ state: 'completed', result: stored })
    expect(seen).toEqual(stored.map((value) => [value, value, value, value, value]))
  })

  it('that cannot be stored exactly is refused with its path where a caller gives it, and never where a handler ends by it', async () => {
    const bad = [{ a: 'x\0y' }, { a: '\ud83d' }, { a: '\ude00x' }, { a: 1n }]
    const errors: unknown[] = []
    const odd = job(
      async (ctx) => {
        for (const value of bad) {
          await ctx.checkpoint(value).catch((error: unknown) => errors.push(error))
          await ctx.transaction(async (tx) => {
            await tx
              .effect('write:x', { key: 'k' }, () => value)
              .catch((error: unknown) => errors.push(error))
            // The transaction is still of use.
            await tx.query('select 1')
          })
        }
        await ctx.progress(0.5, `note\0 with \ud83d`)
        await ctx.commit(() => bad)
      },
      { maxAttempts: 1 },
    )
    await using opened = await open({ jobs: [odd] })
    const { id } = await opened.app.enqueue(odd, null)
    const end = await opened.app.job(id).wait({ timeoutMs: 20_000 })

    expect(end?.state).toBe('completed')
    expect(errors).toHaveLength(8)
    for (const error of errors)
      expect(error).toMatchObject({ code: 'NOT_STORABLE', path: expect.stringContaining('a') })
    expect(opened.events.of('result.altered')).toHaveLength(1)
  })
})

describeEachApp("a transaction of a handler's", ({ open }) => {
  it('is not spoiled by a duplicate enqueue, nor by an effect that has happened', async () => {
    const mail = job(() => {}, { name: 'mail' })
    const both = job(async (ctx) => {
      return await ctx.commit(async (tx) => {
        await tx.query('insert into written values (1)')
        const one = await tx.enqueue(mail, null, { uniqueKey: 'u' })
        const two = await tx.enqueue(mail, null, { uniqueKey: 'u' })
        const done = [
          await tx.effect('write:x', { key: 'k' }, () => 1),
          await tx.effect('write:x', { key: 'k' }, () => 2),
        ]
        await tx.query('insert into written values (2)')
        return [one.status, two.status, done]
      })
    }, mayEnqueue('mail'))
    await using opened = await open({ jobs: [both, mail] })
    await opened.sql('create table written (n int)')
    const { id } = await opened.app.enqueue(both, null)

    expect(await opened.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
      result: ['created', 'existing', [1, 1]],
    })
    expect(await opened.sql('select n from written order by n')).toEqual([{ n: 1 }, { n: 2 }])
  })

  it('refuses calls that do not go through it, within moments, and the next call works', async () => {
    const codes: string[] = []
    const calls = job(async (ctx) => {
      await ctx.transaction(async () => {
        for (const call of [
          () => ctx.effect('call:x', { key: 'k' }, () => 1),
          () => ctx.checkpoint(1),
          () => ctx.enqueue(calls, null),
          () => ctx.transaction(() => 1),
          () => ctx.commit(() => 1),
          () => opened.app.effect('call:x', { key: 'k' }, () => 1),
        ])
          await (call() as Promise<unknown>).catch((error: unknown) =>
            codes.push((error as { code: string }).code),
          )
      })
      return await ctx.effect('call:x', { key: 'k' }, () => 'works')
    }, mayEnqueue('job'))
    await using opened = await open({ jobs: [calls] })
    const { id } = await opened.app.enqueue(calls, null)

    expect(await opened.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ result: 'works' })
    expect(codes).toEqual(Array.from({ length: 6 }, () => 'OUTSIDE_TRANSACTION'))
  })
})

describe('a lease', () => {
  it('that ran out goes to the rescue or to the commit of its handler, never to both, 100 times', async () => {
    await using db = await createDatabase()
    const driver = createPgDriver({ url: db.url })
    const database = databaseOf(driver)
    const wins = { rescue: 0, commit: 0 }
    for (let round = 0; round < 100; round += 1) {
      const workerId = await register(database)
      const [jobId = ''] = await enqueue(database, 1)
      const [claimed] = await claim(database, workerId, 1)
      const ids = { workerId, token: claimed?.lease.token ?? 0n, jobId, place: claimed?.place ?? 0 }
      await db.sql(`update holdfast.worker set heartbeat_at = now() - interval '1 hour'`)
      const committing = driver.transaction(async (tx) => {
        const inside = { ...database, queryable: tx, prepare: false }
        const { live } = await runOne(inside, fenceAttempt, { ...ids, idleMs: null })
        if (!live) return false
        return (
          await runOne(inside, completeInTransaction, { ...ids, durationMs: 1, late: false, result: null })
        ).live
      })
      const [isCommitted] = await Promise.all([committing, rescueJobs(driver, database, new EventHub())])
      // What the rescue passed over is found by the next one.
      await rescueJobs(driver, database, new EventHub())
      const [row] = await db.sql<{ ended: number; waiting: number }>(
        `select (select count(*)::int from holdfast.outcome where job_id = $1) as ended,
          (select count(*)::int from holdfast.ready where job_id = $1) as waiting`,
        [jobId],
      )
      expect(row).toEqual(isCommitted ? { ended: 1, waiting: 0 } : { ended: 0, waiting: 1 })
      wins[isCommitted ? 'commit' : 'rescue'] += 1
      await db.sql('delete from holdfast.ready')
    }
    await driver.close()
    expect(wins.commit + wins.rescue).toBe(100)
    expect(wins.commit).toBeGreaterThan(0)
  })
})

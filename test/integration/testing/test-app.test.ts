import { describe, expect, it, vi } from 'vitest'
import { z } from 'zod'
import { type AnyJob, defineJob, PermanentError } from '../../../src/index.ts'
import { createTestApp, DrainError } from '../../../src/testing/testing.ts'
import { appOf, noted, orderInput } from './jobs.ts'

const HOUR_MS = 3_600_000
const anything = z.any()

describe('a test app', () => {
  it('stores, claims and settles as the application does, and its database is its own', async () => {
    const app = appOf([noted])
    await using one = await createTestApp(app)
    await using two = await createTestApp(app)
    const { id } = await one.enqueue(noted, { orderId: '1' }, { uniqueKey: 'order-1' })

    expect(await one.runNext()).toMatchObject({ id, name: 'noted', attempt: 1, outcome: 'completed' })
    expect(await one.runNext()).toBeUndefined()
    expect(await two.enqueued()).toEqual([])
    expect(await one.query('select state from holdfast.jobs where id = $1', [id])).toEqual([
      { state: 'completed' },
    ])
  })

  it('starts empty whatever the test before left: rows, tables, ids, settings, the time', async () => {
    const app = appOf([noted])
    const first = await createTestApp(app, { setup: 'create table left_over (n int); create schema more' })
    await first.enqueue(noted, { orderId: '1' }, { idempotencyKey: 'k', delayMs: 5 })
    await first.execute(`set timezone = 'Asia/Tokyo'`)
    await first.clock.advance(HOUR_MS)
    await first.close()
    await expect(first.query('select 1')).rejects.toMatchObject({ code: 'CLOSED' })

    await using second = await createTestApp(app)
    expect(await second.enqueued()).toEqual([])
    expect(await second.query(`select to_regclass('left_over') as t, to_regnamespace('more') as s`)).toEqual([
      { t: null, s: null },
    ])
    expect(await second.query(`select current_setting('timezone') as zone`)).not.toEqual([
      { zone: 'Asia/Tokyo' },
    ])
    expect(Math.abs(second.clock.now().getTime() - Date.now())).toBeLessThan(1000)
    expect(await second.enqueue(noted, { orderId: '1' }, { idempotencyKey: 'k' })).toEqual({
      id: '1',
      status: 'created',
    })
  })

  it('gets another database when the one before hangs in a transaction', async () => {
    const stuck = defineJob({
      name: 'stuck',
      input: anything,
      idempotent: true,
      handler: async (ctx) => {
        await ctx.transaction(async () => await new Promise(() => {}))
      },
    })
    const app = appOf([stuck])
    const first = await createTestApp(app)
    const { id } = await first.enqueue(stuck, {})
    await expect(first.runNext({ timeoutMs: 200 })).rejects.toMatchObject({
      name: 'DrainError',
      reason: 'deadline',
      jobs: [{ id, name: 'stuck' }],
    })
    // Its transaction is over, and the next statement gets through.
    expect(await first.query('select 1 as one')).toEqual([{ one: 1 }])
    void first.app.internals.driver.transaction(async () => await new Promise(() => {}))
    await first.close()

    await using second = await createTestApp(app)
    expect(await second.enqueued()).toEqual([])
  })

  it('is made in a moment once PostgreSQL runs', async () => {
    const app = appOf([noted])
    const make = async () => await (await createTestApp(app)).close()
    await make()
    // Of this process, in which PostgreSQL runs too: what others do on the machine does not count.
    const started = process.cpuUsage()
    for (let made = 0; made < 20; made += 1) await make()
    const { user, system } = process.cpuUsage(started)
    // In milliseconds some 15; an instance of its own would take a hundred times that.
    expect((user + system) / 1000 / 20).toBeLessThan(100)
  })
})

describe('draining', () => {
  const failing = defineJob({
    name: 'failing',
    input: z.object({ how: z.string() }),
    idempotent: true,
    effects: ['enqueue:noted'],
    maxAttempts: 2,
    retry: () => HOUR_MS,
    handler: async (ctx, { how }) => {
      if (how === 'snooze' && !ctx.job.checkpoint) {
        await ctx.checkpoint(true)
        ctx.snooze({ inMs: HOUR_MS })
      }
      if (how === 'cancel') ctx.cancel('no need')
      if (how === 'permanent') throw new PermanentError('never')
      if (how === 'fail') throw new Error('again')
      if (how === 'children') await ctx.enqueue(noted, { orderId: 'child' })
    },
  })
  const app = appOf([failing, noted])

  it('tells completed, retried, discarded, cancelled and snoozed apart, and runs what jobs enqueue', async () => {
    await using t = await createTestApp(app)
    for (const how of ['snooze', 'cancel', 'permanent', 'fail', 'children']) await t.enqueue(failing, { how })
    const report = await t.drain()

    expect(report.completed.map(({ name }) => name)).toEqual(['failing', 'noted'])
    expect(report.retried).toMatchObject([{ id: '4', attempt: 1, error: new Error('again') }])
    expect(report.discarded).toMatchObject([{ id: '3', error: new PermanentError('never') }])
    expect(report.cancelled).toMatchObject([{ id: '2' }])
    expect(report.snoozed).toMatchObject([{ id: '1' }])
    expect(report.all).toHaveLength(6)
    // What waits, waits.
    expect((await t.drain()).all).toEqual([])

    const later = await t.drain({ advance: true })
    expect(later.completed.map(({ id }) => id)).toEqual(['1'])
    expect(later.discarded.map(({ id, attempt }) => [id, attempt])).toEqual([['4', 2]])
  })

  it('ends, with an error that names the jobs, when there is no end of jobs', async () => {
    const endless = defineJob({
      name: 'endless',
      input: anything,
      idempotent: true,
      effects: ['enqueue:endless'],
      handler: async (ctx) => void (await ctx.enqueue(endless as never, {} as never)),
    }) as AnyJob
    await using t = await createTestApp(appOf([endless]))
    await t.enqueue(endless, {})
    const error = await t.drain({ maxJobs: 5 }).catch((thrown: unknown) => thrown)
    expect(error).toBeInstanceOf(DrainError)
    expect(error).toMatchObject({ reason: 'max-jobs', jobs: [{ id: '6', name: 'endless' }] })
  })

  it('ends, with an error that names the job, when a handler hangs, and lets that one write no more', async () => {
    let wake: () => void = () => {}
    const hanging = defineJob({
      name: 'hanging',
      input: anything,
      idempotent: true,
      effects: ['enqueue:noted'],
      handler: async (ctx) => {
        await new Promise<void>((resolve) => (wake = resolve))
        await ctx.enqueue(noted, { orderId: 'late' })
      },
    })
    await using t = await createTestApp(appOf([hanging, noted]))
    const { id } = await t.enqueue(hanging, {})
    await expect(t.drain({ timeoutMs: 1000 })).rejects.toMatchObject({
      code: 'DRAIN',
      reason: 'deadline',
      jobs: [{ id, name: 'hanging' }],
    })
    wake()
    await new Promise((resolve) => setImmediate(resolve))
    await t.expectEnqueued(noted, { times: 0 })
  })

  it('tells a running handler that its job was cancelled', async () => {
    const patient = defineJob({
      name: 'patient',
      input: anything,
      idempotent: true,
      handler: async ({ signal }) =>
        await new Promise((_, reject) =>
          signal.addEventListener('abort', () => reject(signal.reason as Error)),
        ),
    })
    await using t = await createTestApp(appOf([patient]))
    const { id } = await t.enqueue(patient, {})
    const ran = t.runNext()
    await vi.waitFor(async () => expect(await t.enqueued()).toMatchObject([{ state: 'executing' }]))
    await t.app.job(id).cancel({ reason: 'enough' })
    expect(await ran).toMatchObject({ outcome: 'cancelled' })
  })

  it('runs nothing of a paused queue, and parks what the schema refuses', async () => {
    const strict = defineJob({
      name: 'strict',
      input: z.object({ n: z.number() }),
      idempotent: true,
      handler: () => {},
    })
    await using t = await createTestApp(appOf([strict, noted], { queues: { default: {}, other: {} } }))
    await t.query(`select * from holdfast.enqueue('strict', '{"n": "text"}')`)
    await t.query(`insert into holdfast.queue (name, paused_at) values ('other', now())`)
    await t.enqueue(noted, { orderId: '1' }, { queue: 'other' })
    const { parked, all } = await t.drain({ advance: true })
    expect([parked.length, all.length]).toEqual([1, 1])
  })
})

describe('the clock', () => {
  it('moves what PostgreSQL decides by time: runAt, retries, idempotency keys, and the time in statements', async () => {
    await using t = await createTestApp(appOf([noted]))
    const before = t.clock.now()
    await t.enqueue(noted, { orderId: 'delayed' }, { delayMs: HOUR_MS })
    await t.enqueue(noted, { orderId: 'at' }, { runAt: new Date(before.getTime() + 2 * HOUR_MS) })
    const { id } = await t.enqueue(noted, { orderId: 'keyed' }, { idempotencyKey: 'k' })

    expect((await t.drain()).completed.map((job) => job.id)).toEqual([id])
    await t.clock.advance(HOUR_MS)
    expect((await t.drain()).completed).toHaveLength(1)
    await t.clock.advance(HOUR_MS)
    expect((await t.drain()).completed).toHaveLength(1)
    expect(t.clock.now().getTime() - before.getTime()).toBeGreaterThanOrEqual(2 * HOUR_MS)
    expect((await t.enqueue(noted, { orderId: 'keyed' }, { idempotencyKey: 'k' })).id).toBe(id)
    await t.clock.advance(24 * HOUR_MS)
    expect((await t.enqueue(noted, { orderId: 'keyed' }, { idempotencyKey: 'k' })).status).toBe('created')

    const [{ now }] = (await t.query(`select now() as now`)) as [{ now: Date }]
    expect(Math.abs(now.getTime() - t.clock.now().getTime())).toBeLessThan(1000)
    // The process's own time stays.
    expect(Date.now() - before.getTime()).toBeLessThan(HOUR_MS)
    await expect(t.clock.advance(-1)).rejects.toMatchObject({ field: 'ms' })
  })

  it('is the one that a delay is counted from', async () => {
    await using t = await createTestApp(appOf([noted]))
    await t.clock.advance(HOUR_MS)
    await t.enqueue(noted, { orderId: 'delayed' }, { delayMs: 60_000 })
    await t.enqueue(noted, { orderId: 'at' }, { runAt: new Date(t.clock.now().getTime() + 60_000) })
    expect((await t.drain()).all).toEqual([])
    await t.clock.advance(60_100)
    expect((await t.drain()).completed).toHaveLength(2)
  })

  it('ends leases: another worker takes the job over', async () => {
    let attempts = 0
    const crashing = defineJob({
      name: 'crashing',
      input: anything,
      idempotent: true,
      handler: async () => {
        attempts += 1
        if (attempts === 1) await new Promise(() => {})
      },
    })
    await using t = await createTestApp(appOf([crashing]))
    const { id } = await t.enqueue(crashing, {})
    await expect(t.runNext({ timeoutMs: 200 })).rejects.toBeInstanceOf(DrainError)
    t.replaceWorker()
    expect(await t.runNext()).toBeUndefined()
    await t.clock.advance(31_000)
    expect(await t.runNext()).toMatchObject({ id, attempt: 2, outcome: 'completed' })
  })

  it('works beside the faked time of a test runner', async () => {
    vi.useFakeTimers({ now: new Date('2030-01-01') })
    try {
      await using t = await createTestApp(appOf([noted]))
      await t.enqueue(noted, { orderId: '1' }, { delayMs: HOUR_MS })
      expect((await t.drain()).all).toEqual([])
      expect((await t.drain({ advance: true })).completed).toHaveLength(1)
      expect(t.clock.now().getUTCFullYear()).toBe(2030)
    } finally {
      vi.useRealTimers()
    }
  })
})

describe('expectEnqueued', () => {
  const job = defineJob({
    name: 'sales.sendConfirmation',
    input: orderInput.extend({ lines: z.array(z.object({ sku: z.string(), count: z.number() })).optional() }),
    idempotent: true,
    handler: () => {},
  })
  const app = appOf([job, noted], { queues: { default: {}, mail: {} } })

  it('gives the jobs that match, by parts of their input, number, queue and key', async () => {
    await using t = await createTestApp(app)
    await t.enqueue(
      job,
      { orderId: '42', lines: [{ sku: 'a', count: 2 }] },
      { queue: 'mail', uniqueKey: 'k' },
    )
    await t.enqueue(job, { orderId: '43' })
    await t.drain()

    const found = await t.expectEnqueued(job, {
      input: { lines: [{ count: expect.any(Number) }] },
      queue: 'mail',
      uniqueKey: 'k',
      times: 1,
    })
    expect(found).toMatchObject([{ id: '1', state: 'completed', input: { orderId: '42' } }])
    expect(await t.expectEnqueued(job)).toHaveLength(2)
    await t.expectEnqueued(noted, { times: 0 })
  })

  it('says what was enqueued instead', async () => {
    await using t = await createTestApp(app)
    await t.enqueue(job, { orderId: '42' }, { uniqueKey: 'order-42' })
    const error = await t.expectEnqueued(job, { input: { orderId: '43' } }).catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({
      name: 'AssertionError',
      actual: [{ orderId: '42' }],
      expected: { orderId: '43' },
    })
    expect((error as Error).message).toBe(
      `expected at least one job "sales.sendConfirmation" enqueued with input { orderId: '43' }, found 0\n` +
        `enqueued were:\n  1  sales.sendConfirmation {"orderId":"42"}  (available, queue "default", unique key "order-42")`,
    )
    await expect(t.expectEnqueued(job, { times: 2 })).rejects.toThrow('expected 2 jobs')
    await expect(t.expectEnqueued(job, { queue: 'mail' })).rejects.toThrow('in queue "mail"')
    await expect(t.expectEnqueued(noted)).rejects.toThrow('found 0')
  })
})

import { beforeEach, describe, expect, it } from 'vitest'
import {
  defineJob,
  type EffectName,
  type EnqueueOptions,
  type JobContext,
  resource,
} from '../../../src/index.ts'
import { type CrashReport, everyCrashPoint, type TestApp } from '../../../src/testing/testing.ts'
import { appOf, noted, orderInput } from './jobs.ts'

/** A mail provider: it takes a mail once for each idempotency key, and every one without. */
const provider = {
  delivered: [] as string[],
  keys: new Set<string>(),
  async send(about: string, idempotencyKey?: string): Promise<string> {
    if (idempotencyKey !== undefined && this.keys.has(idempotencyKey)) return 'seen before'
    if (idempotencyKey !== undefined) this.keys.add(idempotencyKey)
    this.delivered.push(about)
    return `receipt for ${about}`
  },
}

const TABLES = `
  create table orders (id text primary key, status text not null);
  insert into orders values ('42', 'confirmed');
  create table counter (name text primary key, value int not null);
  insert into counter values ('orders', 0)`

async function setup(t: TestApp): Promise<void> {
  provider.delivered = []
  provider.keys.clear()
  await t.execute(TABLES)
}

type Context = JobContext<Record<string, unknown>, EffectName>
type Handler = (ctx: Context, input: { orderId: string }) => Promise<unknown>

let attempts = 0
beforeEach(() => {
  attempts = 0
})

const mailer = resource({ name: 'mailer', provides: ['send:email', 'send:sms'], create: () => provider })

/** Runs `handler` with a death at each of its steps. */
async function enumerate(
  handler: Handler,
  options: { maxAttempts?: number; enqueue?: EnqueueOptions } = {},
): Promise<CrashReport> {
  const job = defineJob({
    name: 'confirm',
    input: orderInput,
    idempotent: true,
    uses: { mailer },
    effects: ['send:email', 'send:sms', 'enqueue:noted'],
    ...(options.maxAttempts === undefined ? {} : { maxAttempts: options.maxAttempts }),
    handler: async (ctx, input) => {
      attempts += 1
      await handler(ctx, input)
    },
  })
  const app = appOf([job, noted])
  return await everyCrashPoint(
    app,
    job,
    { orderId: '42' },
    {
      setup,
      enqueue: options.enqueue,
      observe: async ({ t }) => ({
        delivered: provider.delivered,
        orders: await t.query('select id, status from orders order by id'),
        counter: await t.query('select value from counter'),
        children: (await t.enqueued()).filter(({ name }) => name === 'noted').map(({ input }) => input),
      }),
    },
  )
}

const harmful = (report: CrashReport) => report.points.filter((point) => !point.ok).map(({ name }) => name)
const markSent = `update orders set status = 'sent' where id = $1`
const countUp = `update counter set value = value + 1`

describe('every crash point finds', () => {
  it('a mail sent before the write that says so; and passes it with the ledger', async () => {
    const naive = await enumerate(async (ctx, { orderId }) => {
      await provider.send(orderId)
      await ctx.transaction(async (tx) => await tx.query(markSent, [orderId]))
    })
    expect(harmful(naive)).toContain('transaction, before it')
    expect(naive.points[0]).toMatchObject({
      name: 'transaction, before it',
      attempts: 2,
      verdict: 'differs',
      differences: ['delivered: 2 times "42"'],
    })

    const mended = await enumerate(async (ctx, { orderId }) => {
      await ctx.effect(
        'send:email',
        { key: `confirmation:${orderId}`, ifUncertain: 'repeat' },
        async ({ idempotencyKey }) => await provider.send(orderId, idempotencyKey),
      )
      await ctx.commit(async (tx) => await tx.query(markSent, [orderId]))
    })
    expect(mended.toString()).toContain('dying at any of them does no harm')
    expect(mended.points.map(({ name }) => name)).toEqual([
      'send:email before its intent',
      'send:email intended, before its call',
      'send:email called, before its record',
      'send:email recorded',
      'commit, before it',
      'commit, before it completes',
      'commit done',
    ])
    expect(mended.points.map((point) => point.attempts)).toEqual([2, 2, 2, 2, 2, 2, 1])
    // The outside was asked twice, and the provider knew the key.
    expect(mended.points[2]?.effects).toEqual([
      { effect: 'send:email "confirmation:42"', calls: 2, undisturbed: 1 },
    ])
    mended.assert()
  })

  it('a unique key that is taken for a promise about the outside', async () => {
    const report = await enumerate(async (_, { orderId }) => void (await provider.send(orderId)), {
      enqueue: { uniqueKey: 'order-42' },
    })
    expect(report.points).toMatchObject([
      { attempts: 2, ok: false, differences: ['delivered: 2 times "42"'] },
    ])
  })

  it('a provider key built from the attempt; and passes the one that is given', async () => {
    const send =
      (keyOf: (ctx: Context, given: string) => string): Handler =>
      async (ctx, { orderId }) =>
        await ctx.effect(
          'send:email',
          { key: orderId, ifUncertain: 'repeat' },
          async ({ idempotencyKey }) => await provider.send(orderId, keyOf(ctx, idempotencyKey)),
        )
    const faulty = await enumerate(send((ctx) => `${ctx.job.id}:${ctx.job.attempt}`))
    expect(harmful(faulty)).toEqual(['send:email called, before its record'])
    ;(await enumerate(send((_, given) => given))).assert()
  })

  it('a counter bumped outside the commit; and passes it inside', async () => {
    const faulty = await enumerate(async (ctx, { orderId }) => {
      await ctx.transaction(async (tx) => await tx.query(countUp))
      await ctx.commit(async (tx) => await tx.query(markSent, [orderId]))
    })
    expect(harmful(faulty)).toEqual([
      'transaction committed',
      'commit, before it',
      'commit, before it completes',
    ])
    expect(faulty.points.find((point) => !point.ok)?.differences).toEqual([
      'counter: also {"value":2}',
      'counter: missing {"value":1}',
    ])
    const mended = await enumerate(async (ctx, { orderId }) => {
      await ctx.commit(async (tx) => {
        await tx.query(countUp)
        await tx.query(markSent, [orderId])
      })
    })
    mended.assert()
  })

  it('a checkpoint saved before its effect; and passes it saved after', async () => {
    const send: Handler = async (ctx, { orderId }) =>
      await ctx.effect(
        'send:email',
        { key: orderId, ifUncertain: 'repeat' },
        async ({ idempotencyKey }) => await provider.send(orderId, idempotencyKey),
      )
    const faulty = await enumerate(async (ctx, input) => {
      if (ctx.job.checkpoint !== undefined) return
      await ctx.checkpoint('sent')
      await send(ctx, input)
    })
    expect(harmful(faulty)).toEqual([
      'checkpoint saved',
      'send:email before its intent',
      'send:email intended, before its call',
    ])
    expect(faulty.points.find((point) => !point.ok)?.differences).toEqual(['delivered: missing "42"'])
    const mended = await enumerate(async (ctx, input) => {
      if (ctx.job.checkpoint !== undefined) return
      await send(ctx, input)
      await ctx.checkpoint('sent')
    })
    mended.assert()
  })

  it('a child enqueued outside the transaction; and passes it inside', async () => {
    const faulty = await enumerate(async (ctx, { orderId }) => {
      await ctx.enqueue(noted, { orderId })
      await ctx.commit(async (tx) => await tx.query(markSent, [orderId]))
    })
    expect(harmful(faulty)).toEqual([
      'enqueue noted committed',
      'commit, before it',
      'commit, before it completes',
    ])
    const mended = await enumerate(async (ctx, { orderId }) => {
      await ctx.commit(async (tx) => {
        await tx.query(markSent, [orderId])
        await tx.enqueue(noted, { orderId })
      })
    })
    mended.assert()
  })
})

describe('a death', () => {
  it('lets nothing of the attempt reach the database, the ledger or another job, whatever it does', async () => {
    const report = await enumerate(async (ctx, { orderId }) => {
      const first = ctx.job.attempt === 1
      await Promise.all([
        ctx.checkpoint(`attempt ${ctx.job.attempt}`),
        ctx.transaction(async (tx) => {
          await tx.query(markSent, [orderId])
          await tx.query(`select 1`)
        }),
        (async () => {
          for (let turn = 0; turn < 50; turn += 1) await ctx.progress(0.5).catch(() => {})
          if (first) await ctx.enqueue(noted, { orderId })
        })(),
      ])
    })
    // A child of the first attempt is there only if that one got past its enqueue: never twice, never by a dead one.
    for (const { name, differences } of report.points)
      expect([name, differences]).toEqual([
        name,
        /enqueue noted committed|handler over/.test(name) ? [] : ['children: missing {"orderId":"42"}'],
      ])
  })

  it('lets nothing come back that was on its way: the handler does not go on', async () => {
    const report = await enumerate(async (ctx) => {
      const isFirst = ctx.job.attempt === 1
      let asked = false
      const told = Array.from({ length: 5 }, async () => {
        await ctx.progress(0.5)
        if (isFirst && asked) provider.delivered.push('went on')
      })
      await Promise.race(told)
      // The others are on their way to PostgreSQL when it dies here.
      asked = true
      await ctx.checkpoint(1)
      await Promise.all(told)
    })
    expect((report.expected as { delivered: string[] }).delivered).toEqual(Array(4).fill('went on'))
    expect(report.points[0]).toMatchObject({
      name: 'checkpoint, before it',
      differences: Array(4).fill('delivered: missing "went on"'),
    })
  })

  it('in a transaction rolls it back, and gives the connection to others', async () => {
    const report = await enumerate(async (ctx, { orderId }) => {
      await ctx.transaction(async (tx) => await tx.query(countUp))
      await ctx.transaction(async (tx) => await tx.query(markSent, [orderId]))
    })
    expect(report.points.map(({ name, verdict }) => `${name}: ${verdict}`)).toEqual([
      'transaction, before it: same',
      'transaction, before its commit: same',
      'transaction committed: differs',
      'transaction, before it: differs',
      'transaction, before its commit: differs',
      'transaction committed: differs',
      'handler over, before its end is recorded: differs',
    ])
  })

  it('that leaves an effect in doubt asks a person, and is harmless if nothing happened twice', async () => {
    const report = await enumerate(async (ctx, { orderId }) => {
      await ctx.effect('send:email', { key: orderId }, async () => await provider.send(orderId))
    })
    expect(report.points.map(({ verdict, ended }) => `${verdict}, ${ended}`)).toEqual([
      'same, completed',
      'asks, discarded: effect-uncertain',
      'asks, discarded: effect-uncertain',
      'same, completed',
      'same, completed',
    ])
    report.assert()
    const twice = await enumerate(async (ctx, { orderId }) => {
      await provider.send(orderId)
      await ctx.effect('send:email', { key: orderId }, async () => await provider.send('effect'))
    })
    expect(twice.points[1]).toMatchObject({ verdict: 'asks', ok: false })
  })

  it('on the last attempt asks a person too', async () => {
    const report = await enumerate(
      async (ctx) => await ctx.transaction(async (tx) => await tx.query(countUp)),
      {
        maxAttempts: 1,
      },
    )
    expect(report.points[0]).toMatchObject({
      verdict: 'asks',
      ok: true,
      ended: 'discarded: worker lost on the last attempt',
    })
  })
})

describe('the report', () => {
  it('is a table, and its assertion carries it', async () => {
    const report = await enumerate(async (ctx, { orderId }) => {
      await provider.send(orderId)
      await ctx.transaction(async (tx) => await tx.query(markSent, [orderId]))
    })
    expect(report.ok).toBe(false)
    expect(report.toString()).toBe(
      [
        'job "confirm": 4 steps, dying at 4 of them does harm',
        '',
        'step  dies at                                   attempts  ended      compared',
        '1     transaction, before it                    2         completed  DIFFERS',
        '      delivered: 2 times "42"',
        '2     transaction, before its commit            2         completed  DIFFERS',
        '      delivered: 2 times "42"',
        '3     transaction committed                     2         completed  DIFFERS',
        '      delivered: 2 times "42"',
        '4     handler over, before its end is recorded  2         completed  DIFFERS',
        '      delivered: 2 times "42"',
      ].join('\n'),
    )
    expect(() => report.assert()).toThrow(report.toString())
  })

  it('says when a handler takes other steps each time, and refuses one that takes too many', async () => {
    let runs = 0
    const report = await enumerate(async (ctx) => {
      runs += 1
      if (runs === 1) await ctx.checkpoint(1)
    })
    expect(report.points.at(-1)).toMatchObject({ verdict: 'not-reached', ok: false })

    const job = defineJob({
      name: 'long',
      input: orderInput,
      idempotent: true,
      handler: async (ctx) => {
        for (let n = 0; n < 5; n += 1) await ctx.checkpoint(n)
      },
    })
    await expect(
      everyCrashPoint(appOf([job]), job, { orderId: '1' }, { maxSteps: 10 }),
    ).rejects.toMatchObject({ field: 'maxSteps', problem: 'is 10, and the handler takes 11 steps' })
  })

  it('compares tables, children and the result where a test does not say what', async () => {
    const job = defineJob({
      name: 'confirm',
      input: orderInput,
      idempotent: true,
      effects: ['enqueue:noted'],
      handler: async (ctx, { orderId }) => {
        await ctx.enqueue(noted, { orderId })
        await ctx.transaction(async (tx) => await tx.query('insert into log (what) values ($1)', [orderId]))
      },
    })
    const report = await everyCrashPoint(
      appOf([job, noted]),
      job,
      { orderId: '42' },
      {
        setup:
          'create table log (id int generated always as identity, at timestamptz default now(), what text)',
      },
    )
    expect(report.expected).toEqual({
      calls: [],
      enqueued: [{ name: 'noted', queue: 'default', input: { orderId: '42' } }],
      tables: { log: [{ what: '42' }] },
    })
    expect(report.points.at(-1)?.differences).toEqual([
      'enqueued: 2 times {"input":{"orderId":"42"},"name":"noted","queue":"default"}',
      'tables.log: 2 times {"what":"42"}',
    ])
  })

  it('of three steps runs the handler as often as it has points, twice for each, and no more', async () => {
    const handler: Handler = async (ctx, { orderId }) => {
      await ctx.effect(
        'send:email',
        { key: orderId, ifUncertain: 'repeat' },
        async (call) => await provider.send('mail', call.idempotencyKey),
      )
      await ctx.effect(
        'send:sms',
        { key: orderId, ifUncertain: 'repeat' },
        async (call) => await provider.send('sms', call.idempotencyKey),
      )
      await ctx.commit(async (tx) => await tx.query(markSent, [orderId]))
    }
    const report = await enumerate(handler)
    report.assert()
    expect(report.points).toHaveLength(11)
    // The undisturbed run, and for each point the attempt that dies and the one that follows; after the commit none does.
    expect(attempts).toBe(12 + 10)
  })
})

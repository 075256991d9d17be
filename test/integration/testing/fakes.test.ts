import { describe, expect, it } from 'vitest'
import { defineJob, defineProducer, resource, UndeclaredEffectError } from '../../../src/index.ts'
import { createTestApp, everyCrashPoint, fake } from '../../../src/testing/testing.ts'
import { appOf, noted, orderInput } from './jobs.ts'

interface Mailer {
  send(mail: { to: string }, options?: { idempotencyKey: string }): Promise<string>
  address(): string
  readonly from: string
}

const mailer = resource<Mailer>({
  name: 'mailer',
  provides: ['send:email'],
  create: () => {
    throw new Error('a test reached for the real mailer')
  },
  notHappened: (error) => String(error).includes('refused'),
})

const confirm = defineJob({
  name: 'confirm',
  input: orderInput,
  idempotent: true,
  uses: { mailer },
  effects: ['send:email', 'write:log'],
  retry: () => 10,
  handler: async (ctx, { orderId }) => {
    const receipt = await ctx.effect(
      'send:email',
      { key: orderId, ifUncertain: 'repeat' },
      async ({ idempotencyKey }) => await ctx.resources.mailer.send({ to: orderId }, { idempotencyKey }),
    )
    await ctx.commit(async (tx) => await tx.query('insert into log values ($1)', [receipt]))
  },
})

const LOG = 'create table log (what text)'

describe('a fake', () => {
  it('takes the place of a resource, records each call with its result or error, and forgets on reset', async () => {
    let tries = 0
    const fakeMailer = fake(mailer, {
      send: async ({ to }) => {
        tries += 1
        if (tries === 1) throw new Error('refused')
        return `to ${to}`
      },
      address: () => 'a@b',
      from: 'me',
    })
    await using t = await createTestApp(appOf([confirm]), { setup: LOG, resources: { mailer: fakeMailer } })
    await t.enqueue(confirm, { orderId: '42' })
    const { completed, retried } = await t.drain({ advance: true })

    expect([completed.length, retried.length]).toEqual([1, 1])
    expect(fakeMailer.calls).toMatchObject([
      {
        method: 'send',
        args: [{ to: '42' }, { idempotencyKey: expect.any(String) }],
        error: new Error('refused'),
      },
      { method: 'send', args: [{ to: '42' }, {}], result: 'to 42' },
    ])
    expect(await t.query('select what from log')).toEqual([{ what: 'to 42' }])
    // What is not asynchronous stays so, and what is no method is given as it is.
    expect([fakeMailer.value.address(), fakeMailer.value.from]).toEqual(['a@b', 'me'])
    fakeMailer.reset()
    expect(fakeMailer.calls).toEqual([])
  })

  it('says of errors what its resource says: what certainly did not happen is not in doubt', async () => {
    const ask = defineJob({
      ...confirm,
      uses: { mailer },
      effects: ['send:email'],
      handler: async (ctx, { orderId }) => {
        await ctx.effect(
          'send:email',
          { key: orderId },
          async () => await ctx.resources.mailer.send({ to: '' }),
        )
      },
    })
    const run = async (message: string) => {
      const faulty = fake(mailer, { send: async () => await Promise.reject(new Error(message)) })
      await using t = await createTestApp(appOf([ask]), { resources: { mailer: faulty } })
      await t.enqueue(ask, { orderId: '1' }, { maxAttempts: 2 })
      await t.drain({ advance: true })
      return [faulty.calls.length, (await t.query('select reason from holdfast.jobs'))[0]]
    }
    expect(await run('refused')).toEqual([2, { reason: 'no attempts left' }])
    expect(await run('timeout')).toEqual([1, { reason: 'effect-uncertain' }])
  })

  it('is out of reach for a handler that did not end in time', async () => {
    let wake: () => void = () => {}
    const hanging = defineJob({
      ...confirm,
      uses: { mailer },
      effects: ['send:email'],
      handler: async (ctx) => {
        await new Promise<void>((resolve) => (wake = resolve))
        await ctx.resources.mailer.send({ to: 'late' })
      },
    })
    const plain = fake(mailer)
    await using t = await createTestApp(appOf([hanging]), { resources: { mailer: plain } })
    await t.enqueue(hanging, { orderId: '1' })
    await expect(t.runNext({ timeoutMs: 300 })).rejects.toThrow('still running: confirm')
    wake()
    await new Promise((resolve) => setImmediate(resolve))
    expect(plain.calls).toEqual([])
  })

  it('without an implementation resolves to nothing, and is no promise itself', async () => {
    const plain = fake(mailer)
    expect(await Promise.resolve(plain.value)).toBe(plain.value)
    expect(await plain.value.send({ to: 'x' })).toBeUndefined()
    expect(plain.calls).toEqual([{ method: 'send', args: [{ to: 'x' }], result: undefined }])
    const callable = fake(
      resource({ name: 'fetch', provides: ['call:x'], create: () => (n: number) => n }),
      (n) => n + 1,
    )
    expect(callable.value(1)).toBe(2)
    expect(callable.calls).toEqual([{ method: '', args: [1], result: 2 }])
  })
})

describe('every crash point with resources', () => {
  it('dies before and after each call, and lets nothing reach the real ones', async () => {
    const report = await everyCrashPoint(appOf([confirm]), confirm, { orderId: '42' }, { setup: LOG })
    expect(report.points.map(({ name }) => name).slice(0, 6)).toEqual([
      'send:email before its intent',
      'send:email intended, before its call',
      'mailer.send, before it',
      'mailer.send, after it',
      'send:email called, before its record',
      'send:email recorded',
    ])
    // A provider that knows the key counts the repetition once.
    expect(report.expected).toMatchObject({ calls: [{ resource: 'mailer', method: 'send' }] })
    report.assert()
    expect(report.points[3]?.effects).toContainEqual({ effect: 'mailer.send', calls: 2, undisturbed: 1 })
    expect(report.toString()).toContain('mailer.send was called 2 times rather than 1')
  })

  it('counts each call that carries no key', async () => {
    const keyless = defineJob({
      ...confirm,
      uses: { mailer },
      effects: ['send:email'],
      handler: async (ctx, { orderId }) => void (await ctx.resources.mailer.send({ to: orderId })),
    })
    const report = await everyCrashPoint(appOf([keyless]), keyless, { orderId: '42' })
    expect(report.points.map(({ name, ok }) => [name, ok])).toEqual([
      ['mailer.send, before it', true],
      ['mailer.send, after it', false],
      ['handler over, before its end is recorded', false],
    ])
    expect(report.points[1]?.differences).toEqual([
      'calls: 2 times {"args":[{"to":"42"}],"method":"send","resource":"mailer"}',
    ])
  })

  it('lets a killed attempt call nothing more', async () => {
    const parallel = defineJob({
      ...confirm,
      uses: { mailer },
      effects: ['send:email'],
      handler: async (ctx) => {
        const { resources } = ctx
        await Promise.all([
          ctx.checkpoint(1),
          (async () => {
            for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setTimeout(resolve, 1))
            if (ctx.job.attempt === 1) await resources.mailer.send({ to: 'late' })
          })(),
        ])
      },
    })
    const report = await everyCrashPoint(appOf([parallel]), parallel, { orderId: '42' })
    const [first] = report.points
    expect(first).toMatchObject({
      name: 'checkpoint, before it',
      differences: ['calls: missing {"args":[{"to":"late"}],"method":"send","resource":"mailer"}'],
    })
  })
})

describe('undeclared writes', () => {
  const SETUP = `create schema sales; create table sales.orders (id text); create table log (what text);
    create function copy() returns trigger language plpgsql as $$ begin insert into log values (new.id); return new; end $$;
    create trigger copy after insert on sales.orders for each row execute function copy()`
  const job = (effects: readonly `write:${string}`[]) =>
    defineJob({
      name: 'writer',
      input: orderInput,
      idempotent: true,
      effects,
      retry: () => 10,
      maxAttempts: 1,
      handler: async (ctx, { orderId }) => {
        await ctx.transaction(async (tx) => await tx.query('insert into sales.orders values ($1)', [orderId]))
        await ctx.commit(async (tx) => {
          await tx.query('update sales.orders set id = id')
          await tx.query('select * from log')
        })
      },
    })

  it('are reported, by table and owner, with those of triggers, and only those of this transaction', async () => {
    const writer = job(['write:sales.orders'])
    await using t = await createTestApp(appOf([writer]), { setup: SETUP })
    await t.enqueue(writer, { orderId: '1' })
    expect((await t.drain()).completed).toHaveLength(1)
    expect(t.undeclaredWrites).toEqual([
      { owner: { kind: 'job', name: 'writer' }, effect: 'write:public.log', rows: 1 },
    ])
  })

  it('are none where tables are declared, with their schema or without', async () => {
    const writer = job(['write:orders', 'write:public.log'])
    await using t = await createTestApp(appOf([writer]), { setup: SETUP, undeclaredWrites: 'throw' })
    await t.enqueue(writer, { orderId: '1' })
    expect((await t.drain()).completed).toHaveLength(1)
    expect(t.undeclaredWrites).toEqual([])
  })

  it('roll back and fail the attempt where a test wants that, and count for nothing where it does not', async () => {
    const writer = job([])
    await using strict = await createTestApp(appOf([writer]), { setup: SETUP, undeclaredWrites: 'throw' })
    await strict.enqueue(writer, { orderId: '1' })
    const { discarded } = await strict.drain()
    expect(discarded[0]?.error).toBeInstanceOf(UndeclaredEffectError)
    expect(discarded[0]?.error).toMatchObject({
      effect: expect.stringMatching(/^write:(sales\.orders|public\.log)$/),
    })
    expect(await strict.query('select * from sales.orders')).toEqual([])

    await using lax = await createTestApp(appOf([writer]), { setup: SETUP, undeclaredWrites: 'ignore' })
    await lax.enqueue(writer, { orderId: '1' })
    expect((await lax.drain()).completed).toHaveLength(1)
    expect(lax.undeclaredWrites).toEqual([])
  })

  it('of producers are found too; a transaction of the application itself declares nothing', async () => {
    const order = defineProducer({
      name: 'order',
      input: orderInput,
      effects: ['write:log', 'enqueue:noted'],
      run: async (tx, { orderId }) => {
        await tx.query('insert into sales.orders values ($1)', [orderId])
        return (await tx.enqueue(noted, { orderId })).status
      },
    })
    await using t = await createTestApp(appOf([noted], { producers: [order] }), { setup: SETUP })
    expect(await t.app.produce(order, { orderId: '1' })).toBe('created')
    await t.app.transaction(async (tx) => await tx.query('insert into sales.orders values ($1)', ['2']))
    expect(t.undeclaredWrites).toEqual([
      { owner: { kind: 'producer', name: 'order' }, effect: 'write:sales.orders', rows: 1 },
    ])
    await t.expectEnqueued(noted, { times: 1 })
  })
})

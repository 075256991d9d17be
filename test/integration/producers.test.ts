import { expect, it } from 'vitest'
import {
  type App,
  defineJob,
  defineProducer,
  type EffectName,
  UndeclaredEffectError,
} from '../../src/index.ts'
import { anything, describeEachHome, note, runInHandler } from './homes.ts'

const ORDERS = 'create table orders (id text primary key, confirmed bool not null default false)'

const send = defineJob({ name: 'mail.send', input: anything<string>(), idempotent: true, handler: () => {} })

/** Confirms an order; then does what the test says. */
const confirm = defineProducer({
  name: 'sales.confirm',
  input: anything<string>(),
  effects: ['write:sales.order', 'enqueue:mail.send'],
  async run(tx, id) {
    const { rowCount } = await tx.query('insert into orders values ($1, true)', [id])
    const first = await tx.enqueue(send, id, { uniqueKey: id, priority: 3 })
    await tx.enqueueMany([{ job: send, input: `${id} again`, uniqueKey: id }])
    if (id === 'fails') throw new Error('changed my mind')
    return { rowCount, id: first.id }
  },
})

/** Enqueues a job that it does not declare, as only a program without types can. */
const sly = defineProducer({
  name: 'sales.sly',
  input: anything<{ readonly many: boolean }>(),
  effects: ['write:sales.order', 'enqueue:mail.send'],
  async run(tx, { many }) {
    await tx.query("insert into orders values ('sly')")
    if (many)
      await tx.enqueueMany([
        { job: send, input: 'declared' },
        { job: note as never, input: 'not' },
      ])
    else await tx.enqueue(note as never, 'not' as never)
  },
})

/** The application of the running test. */
let app: () => App

const nested = defineProducer({
  name: 'sales.nested',
  input: anything<string>(),
  effects: [],
  async run(tx, id) {
    await app().produce(confirm, id, { tx })
  },
})

const options = { jobs: [send], producers: [confirm, sly, nested] }

describeEachHome('a producer', ({ open }) => {
  it('commits its statements and its jobs together, and gives its result', async () => {
    await using home = await open(options)
    await home.sql(ORDERS)

    const { rowCount, id } = await home.app.produce(confirm, '42')

    expect(rowCount).toBe(1)
    expect(await home.sql('select id::text, priority, input::text from holdfast.job')).toEqual([
      { id, priority: 3, input: '"42"' },
    ])
    expect(await home.sql('select id from orders')).toEqual([{ id: '42' }])
  })

  it('leaves nothing when it throws, and announces nothing', async () => {
    await using home = await open(options)
    await home.sql(ORDERS)
    const told: unknown[] = []
    home.app.events.on('jobs.enqueued', (event) => void told.push(event))

    await expect(home.app.produce(confirm, 'fails')).rejects.toThrow('changed my mind')

    expect(await home.count()).toBe(0)
    expect(await home.sql('select from orders')).toEqual([])
    expect(told).toEqual([])
  })

  it.each([false, true])('cannot enqueue what it does not declare (in bulk: %j)', async (many) => {
    await using home = await open(options)
    await home.sql(ORDERS)

    const refused = home.app.produce(sly, { many })

    await expect(refused).rejects.toThrow(UndeclaredEffectError)
    await expect(refused).rejects.toMatchObject({
      code: 'UNDECLARED_EFFECT',
      owner: { kind: 'producer', name: 'sales.sly' },
      effect: 'enqueue:test.note',
      declared: ['write:sales.order', 'enqueue:mail.send'],
    })
    expect(await home.count()).toBe(0)
    expect(await home.sql('select from orders')).toEqual([])
  })

  it("commits and rolls back with the caller's own transaction", async () => {
    await using home = await open(options)
    await home.sql(ORDERS)

    await home.transaction(async ({ tx, query }) => {
      const { rowCount } = await home.app.produce(confirm, 'kept', { tx })
      expect(rowCount).toBe(1)
      expect(await query('select id from orders')).toEqual([{ id: 'kept' }])
    })
    const thrown = new Error('afterwards')
    const lost = home.transaction(async ({ tx }) => {
      await home.app.produce(confirm, 'lost', { tx })
      throw thrown
    })
    await expect(lost).rejects.toBe(thrown)

    expect(await home.sql('select id from orders')).toEqual([{ id: 'kept' }])
    expect(await home.sql('select input::text from holdfast.job')).toEqual([{ input: '"kept"' }])
  })

  it('joins a transaction of the application, and that of another producer', async () => {
    await using home = await open(options)
    await home.sql(ORDERS)
    app = () => home.app

    await home.app.transaction(async (tx) => {
      await home.app.produce(confirm, 'ours', { tx })
      await home.app.enqueue(note, 'beside', { tx })
    })
    await home.app.produce(nested, 'nested')
    const lost = home.app.transaction(async (tx) => await home.app.produce(confirm, 'fails', { tx }))
    await expect(lost).rejects.toThrow('changed my mind')

    expect(await home.sql('select id from orders order by id')).toEqual([{ id: 'nested' }, { id: 'ours' }])
    expect(await home.count()).toBe(3)
  })

  it('tells in a dry run what it would enqueue, and stores and announces nothing', async () => {
    await using home = await open(options)
    await home.sql(ORDERS)
    await home.work()
    const told: unknown[] = []
    for (const event of ['jobs.enqueued', 'jobs.claimed'] as const)
      home.app.events.on(event, (facts) => void told.push(facts))

    const dry = await home.app.produce(confirm, '42', { dryRun: true })

    expect(dry.result.rowCount).toBe(1)
    expect(dry.enqueues).toEqual([
      { jobName: 'mail.send', input: '42', options: { uniqueKey: '42', priority: 3 }, status: 'created' },
      { jobName: 'mail.send', input: '42 again', options: { uniqueKey: '42' }, status: 'existing' },
    ])
    expect(await home.count()).toBe(0)
    expect(await home.sql('select from orders')).toEqual([])
    await expect(home.app.produce(confirm, 'fails', { dryRun: true })).rejects.toThrow('changed my mind')
    await expect(home.app.produce(sly, { many: false }, { dryRun: true })).rejects.toThrow(
      UndeclaredEffectError,
    )
    expect(await home.count()).toBe(0)
    expect(told).toEqual([])
  })

  it('is checked before anything is sent: its input, its listing, its options', async () => {
    const strict = defineProducer({
      name: 'strict',
      input: {
        '~standard': { version: 1, vendor: 'test', validate: () => ({ issues: [{ message: 'no' }] }) },
      },
      effects: [],
      run: () => expect.unreachable(),
    })
    await using home = await open({ jobs: [send], producers: [strict, confirm] })
    const stranger = { ...confirm }
    await expect(home.app.produce(strict, 1)).rejects.toMatchObject({
      code: 'INVALID_INPUT',
      job: 'strict',
      message: expect.stringContaining('producer "strict"'),
    })
    for (const each of [stranger, undefined, null, 'sales.confirm', note])
      await expect(home.app.produce(each as never, '1' as never)).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        field: 'producer',
      })
    await expect(home.app.produce(confirm, '1', { dryRun: true, tx: {} })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      field: 'dryRun',
    })
    await expect(home.app.produce(confirm, '1', { tx: {} })).rejects.toMatchObject({
      code: 'TRANSACTION_REQUIRED',
    })
  })

  it('cannot enqueue beside its transaction', async () => {
    const beside = defineProducer({
      name: 'beside',
      input: anything(),
      effects: ['enqueue:mail.send'],
      run: async () => await app().enqueue(send, 'beside'),
    })
    await using home = await open({ jobs: [send], producers: [beside] })
    app = () => home.app
    await expect(home.app.produce(beside, null)).rejects.toMatchObject({ code: 'OUTSIDE_TRANSACTION' })
    const joined = home.transaction(async ({ tx }) => await home.app.produce(beside, null, { tx }))
    await expect(joined).rejects.toMatchObject({ code: 'OUTSIDE_TRANSACTION' })
    expect(await home.count()).toBe(0)
  })
})

describeEachHome('a handler', ({ open }) => {
  it('cannot enqueue what its job does not declare, and stores nothing', async () => {
    const effects: readonly EffectName[] = ['enqueue:mail.send']
    const caught: unknown[] = []
    const limited = defineJob({
      name: 'limited',
      input: anything(),
      effects,
      idempotent: true,
      handler: async (ctx) => {
        await ctx.enqueue(send, 'declared')
        await ctx.enqueue(note, 'not').catch((error: unknown) => caught.push(error))
      },
    })
    await using home = await open({ jobs: [send, limited] })
    await home.work()
    const { id } = await home.app.enqueue(limited, null)
    await home.app.job(id).wait({ timeoutMs: 20_000 })

    expect(caught).toEqual([
      expect.objectContaining({
        code: 'UNDECLARED_EFFECT',
        owner: { kind: 'job', name: 'limited' },
        effect: 'enqueue:test.note',
        declared: ['enqueue:mail.send'],
      }),
    ])
    expect(await home.sql("select name from holdfast.job where name <> 'limited'")).toEqual([
      { name: 'mail.send' },
    ])
  })

  it('enqueues what it declares', async () => {
    await using home = await open({ jobs: [send] })
    await home.work()
    await runInHandler(home, async (ctx) => await ctx.enqueue(send, 'x'))
    expect(await home.sql('select name from holdfast.job where name = $1', ['mail.send'])).toHaveLength(1)
  })
})

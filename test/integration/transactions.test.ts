import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { channelOf } from '../../src/base/channel.ts'
import {
  defineJob,
  OutsideTransactionError,
  TransactionAbortedError,
  TransactionRequiredError,
} from '../../src/index.ts'
import { eventually, withResolvers } from '../support/eventually.ts'
import { startProgram } from '../support/processes.ts'
import { startProxy } from '../support/proxy.ts'
import { anything, appOver, describeEachHome, doorsOf, enqueueBySql, note, openPgHome } from './homes.ts'

const ORDERS = 'create table orders (id int8 primary key, confirmed bool not null default false)'

describeEachHome('an enqueue in a transaction', ({ kind, open }) => {
  it('commits with the business change', async () => {
    await using home = await open()
    await home.sql(ORDERS)

    const own = await home.transaction(async ({ tx, query }) => {
      await query('insert into orders values (1, true)')
      return await home.app.enqueue(note, { order: 1 }, { tx })
    })
    const ours = await home.app.transaction(async (tx) => {
      await tx.query('insert into orders values ($1, $2)', [2, true])
      const { rows, rowCount } = await tx.query<{ n: string }>('select count(*)::text as n from orders')
      expect({ rows, rowCount }).toEqual({ rows: [{ n: '2' }], rowCount: 1 })
      return await tx.enqueue(note, { order: 2 })
    })

    expect(await home.sql('select id::text, input::text from holdfast.job order by id')).toEqual([
      { id: own.id, input: '{"order":1}' },
      { id: ours.id, input: '{"order":2}' },
    ])
    expect(await home.sql('select from orders')).toHaveLength(2)
  })

  it('takes several statements at once and tells of the last one, or none of them where the driver takes one', async () => {
    await using home = await open()
    const several = home.app.transaction(
      async (tx) =>
        await tx.query(`${ORDERS}; insert into orders values (1); select id::text as id from orders`),
    )
    if (kind === 'pg') return expect(await several).toEqual({ rows: [{ id: '1' }], rowCount: 1 })
    await expect(several).rejects.toThrow('multiple commands')
    expect(await home.sql(`select to_regclass('orders')::text as orders`)).toEqual([{ orders: null }])
  })

  it('leaves neither row, nor change, nor handler call when the body throws', async () => {
    const called: unknown[] = []
    const send = defineJob({
      name: 'send',
      input: anything(),
      idempotent: true,
      handler: (_, i) => void called.push(i),
    })
    await using home = await open({ jobs: [send] })
    await home.sql(ORDERS)
    await home.work()

    const thrown = new Error('changed my mind')
    const own = home.transaction(async ({ tx, query }) => {
      await query('insert into orders values (1)')
      await home.app.enqueueMany(
        [
          { job: send, input: 1 },
          { job: send, input: 2, uniqueKey: 'k' },
        ],
        { tx },
      )
      throw thrown
    })
    const ours = home.app.transaction(async (tx) => {
      await tx.query('insert into orders values (2)')
      await tx.enqueue(send, 3, { uniqueKey: 'k', idempotencyKey: 'i' })
      throw thrown
    })
    await Promise.all([expect(own).rejects.toBe(thrown), expect(ours).rejects.toBe(thrown)])
    const after = await home.app.enqueue(send, 'after', { uniqueKey: 'k', idempotencyKey: 'i' })
    expect(after.status).toBe('created')
    await home.app.job(after.id).wait({ timeoutMs: 20_000 })

    expect(called).toEqual(['after'])
    expect(await home.count()).toBe(1)
    expect(await home.sql('select from orders')).toEqual([])
  })

  it('leaves only what a savepoint keeps', async () => {
    await using home = await open()
    await home.transaction(async ({ tx, query }) => {
      await home.app.enqueue(note, 'outer', { tx })
      await query('savepoint inner_scope')
      await home.app.enqueue(note, 'inner', { tx, uniqueKey: 'k', idempotencyKey: 'i' })
      await query('rollback to savepoint inner_scope')
      await home.app.enqueue(note, 'after', { tx })
    })

    expect(await home.sql('select input::text from holdfast.job order by id')).toEqual([
      { input: '"outer"' },
      { input: '"after"' },
    ])
    expect(
      await home.sql('select from holdfast.unique_key union all select from holdfast.idempotency_key'),
    ).toEqual([])
    expect(await home.app.enqueue(note, 'inner', { uniqueKey: 'k', idempotencyKey: 'i' })).toMatchObject({
      status: 'created',
    })
  })

  it('is refused without its tx, so that nothing commits apart', async () => {
    await using home = await open()
    const { app } = home
    const calls: ((tx: { query(text: string): Promise<unknown> }) => Promise<unknown>)[] = [
      async () => await app.enqueue(note, 1),
      async () => await app.enqueue(note, 1, { uniqueKey: 'k' }),
      async () => await app.enqueueMany([{ job: note, input: 1 }]),
      async () => await app.enqueueMany([]),
      async () => await app.transaction(async () => {}),
      async () => await Promise.resolve().then(async () => await app.enqueue(note, 1)),
    ]
    for (const [index, call] of calls.entries()) {
      const refused = app.transaction(async (tx) => await call(tx))
      await expect(refused, `call ${index}`).rejects.toThrow(OutsideTransactionError)
    }
    expect(await home.count()).toBe(0)
    expect(await app.enqueue(note, 'afterwards')).toMatchObject({ status: 'created' })
  })

  it('goes on after a refusal: the transaction is still usable', async () => {
    await using home = await open()
    await home.sql(ORDERS)

    await home.app.transaction(async (tx) => {
      await tx.query('insert into orders values (1)')
      await expect(tx.enqueue(note, { a: 'x\0y' })).rejects.toMatchObject({ path: 'input.a' })
      await expect(tx.enqueue(note, 1, { priority: 10 })).rejects.toMatchObject({ code: 'INVALID_ARGUMENT' })
      await expect(home.app.enqueue(note, 1)).rejects.toThrow(OutsideTransactionError)
      await tx.query('insert into orders values (2)')
      await tx.enqueue(note, 'kept')
    })

    expect(await home.sql('select from orders')).toHaveLength(2)
    expect(await home.count()).toBe(1)
  })

  it('is refused in a transaction that is aborted, and a hidden error is told at the end', async () => {
    await using home = await open()
    const ended = home.app.transaction(async (tx) => {
      await tx.query('select 1 / 0').catch(() => {})
      await expect(tx.enqueue(note, 1)).rejects.toThrow(TransactionAbortedError)
    })
    await expect(ended).rejects.toThrow(TransactionAbortedError)
    expect(await home.count()).toBe(0)
  })

  it('is refused once the transaction has ended', async () => {
    await using home = await open()
    let kept: { enqueue(job: typeof note, input: unknown): Promise<unknown> } | undefined
    let own: unknown
    await home.app.transaction(async (tx) => {
      kept = tx
    })
    await home.transaction(async ({ tx }) => {
      own = tx
    })
    await expect(kept?.enqueue(note, 1)).rejects.toThrow(TransactionRequiredError)
    await expect(home.app.enqueue(note, 1, { tx: own })).rejects.toThrow(/tx|transaction|reach/)
    expect(await home.count()).toBe(0)
  })

  it.each([
    ['a number', 1],
    ['a text', 'tx'],
    ['null', null],
    ['an object', {}],
  ])('is refused with %s in place of a transaction', async (_, tx) => {
    await using home = await open()
    await expect(home.app.enqueue(note, 1, { tx })).rejects.toThrow(TransactionRequiredError)
    await expect(home.app.enqueueMany([{ job: note, input: 1 }], { tx })).rejects.toThrow(
      TransactionRequiredError,
    )
    expect(await home.count()).toBe(0)
  })

  it.each(doorsOf(kind).filter(({ name }) => /tx|transaction/.test(name)))(
    'rolls back when a deferred constraint fails at commit ($name)',
    async (door) => {
      await using home = await open()
      await home.sql('create table parent (id int8 primary key)')
      await home.sql('create table child (parent int8 references parent deferrable initially deferred)')
      // The trigger plants the violation from within the enqueue, so that every door meets it at its commit.
      await home.sql(
        `create function plant() returns trigger language plpgsql as $$ begin insert into public.child values (1); return new; end $$`,
      )
      await home.sql(
        'create trigger plant after insert on holdfast.job for each row execute function plant()',
      )

      await expect(door.enqueue(home, note as never, 1)).rejects.toThrow(/constraint|foreign key|refused/)

      expect(await home.count()).toBe(0)
      expect(await home.sql('select from holdfast.ready union all select from child')).toEqual([])
    },
  )

  it('takes ten thousand jobs, all or none', async () => {
    await using home = await open()
    const jobs = Array.from({ length: 10_000 }, (_, i) => ({ job: note, input: i }))

    const undone = home.app.transaction(async (tx) => {
      await tx.enqueueMany(jobs)
      throw new Error('undone')
    })
    await expect(undone).rejects.toThrow('undone')
    expect(await home.count()).toBe(0)
    await home.app.transaction(async (tx) => await tx.enqueueMany(jobs))
    expect(await home.count()).toBe(10_000)
  })
})

describe('with several connections', () => {
  it('shows a job to no worker before the commit, and runs it after', async () => {
    await using home = await openPgHome()
    await home.work()
    const client = new Client({ connectionString: home.url })
    await client.connect()
    try {
      await client.query('begin')
      const { id } = await home.app.enqueue(note, 'held', { tx: client })
      const bySql = await enqueueBySql(
        async (text, params) => (await client.query(text, params as unknown[])).rows,
        note.name,
        '1',
      )
      // Jobs of others pass it by, twice: the worker looks at the queue in which it will be.
      for (let round = 0; round < 2; round += 1) {
        const other = await home.app.enqueue(note, round)
        expect(await home.app.job(other.id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
      }
      expect(await home.app.job(id).get()).toBeUndefined()
      expect(await home.app.job(bySql.id).get()).toBeUndefined()

      await client.query('rollback')
      await client.query('begin')
      const again = await home.app.enqueue(note, 'held', { tx: client })
      await client.query('commit')
      expect(await home.app.job(again.id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
      expect(await home.app.job(id).get()).toBeUndefined()
    } finally {
      await client.end()
    }
  })

  it('announces nothing before the commit, and nothing on rollback; one wake-up for ten thousand', async () => {
    await using home = await openPgHome()
    const listener = new Client({ connectionString: home.url })
    const heard: string[] = []
    listener.on('notification', ({ payload }) => heard.push(payload ?? ''))
    await listener.connect()
    const client = new Client({ connectionString: home.url })
    await client.connect()
    try {
      await listener.query(`listen "${channelOf('holdfast')}"`)
      await home.sql(`insert into holdfast.waiter values ('default', 1), ('mail', 2)`)
      const marks = async (mark: string) => {
        await home.sql(`select pg_notify($1, $2)`, [channelOf('holdfast'), mark])
        await eventually(mark, () => heard.includes(mark))
      }

      await client.query('begin')
      await home.app.enqueue(note, 1, { tx: client })
      await home.app.enqueue(note, 1, { tx: client, uniqueKey: 'k' })
      await marks('before commit')
      await client.query('rollback')
      await marks('after rollback')
      expect(heard).toEqual(['before commit', 'after rollback'])

      await client.query('begin')
      await home.app.enqueueMany(
        Array.from({ length: 10_000 }, (_, i) => ({ job: note, input: i })),
        { tx: client },
      )
      await marks('before the second commit')
      await client.query('commit')
      await marks('after commit')
      expect(heard.slice(2)).toEqual([
        'before the second commit',
        expect.stringMatching(/^[0-9a-f]{1,16}$/),
        'after commit',
      ])
    } finally {
      await client.end()
      await listener.end()
    }
  })

  it('takes few statements for ten thousand jobs', async () => {
    await using home = await openPgHome()
    await using proxy = await startProxy(home.url)
    const app = appOver(proxy.url())
    try {
      await app.enqueue(note, 'warm')
      const texts: string[] = []
      proxy.events.on('statement', ({ text }) => texts.push(text))
      await app.transaction(async (tx) => {
        await tx.enqueueMany(Array.from({ length: 10_000 }, (_, i) => ({ job: note, input: i })))
      })
      expect(texts.filter((text) => /enqueue/.test(text))).toHaveLength(1)
      expect(texts.length).toBeLessThan(6)
    } finally {
      await app.close()
    }
  })

  it('lets nobody wait for a business transaction that stays open after it enqueued', async () => {
    const hold = withResolvers<void>()
    const slow = defineJob({
      name: 'slow',
      queue: 'mail',
      input: anything(),
      idempotent: true,
      handler: async () => await hold.promise,
    })
    await using home = await openPgHome({ jobs: [slow], leaseMs: 1000 })
    await home.app.migrate()
    await home.work()
    const running = await home.app.enqueue(slow, 1)
    await eventually('it runs', async () => (await home.app.job(running.id).get())?.state === 'executing')
    const client = new Client({ connectionString: home.url })
    await client.connect()
    try {
      await client.query('begin')
      const query = async (text: string, params?: readonly unknown[]) =>
        (await client.query(text, params as unknown[])).rows
      await home.app.enqueueMany(
        [
          { job: note, input: 1 },
          { job: note, input: 2, uniqueKey: 'mine', idempotencyKey: 'mine' },
          { job: note, input: 3, delayMs: 1 },
        ],
        { tx: client },
      )
      await enqueueBySql(query, note.name, '1')

      // Longer than a lease: heartbeats, claims, settles and enqueues of others go on meanwhile.
      const until = performance.now() + 2500
      let rounds = 0
      let slowest = 0
      while (performance.now() < until) {
        const before = performance.now()
        const [a, b] = await Promise.all([
          home.app.enqueue(note, rounds, { uniqueKey: `theirs-${rounds}` }),
          home.app.enqueue(note, rounds),
        ])
        await Promise.all([a, b].map(async ({ id }) => await home.app.job(id).wait({ timeoutMs: 20_000 })))
        slowest = Math.max(slowest, performance.now() - before)
        rounds += 1
      }
      hold.resolve()
      expect(await home.app.job(running.id).wait({ timeoutMs: 2000 })).toMatchObject({
        state: 'completed',
        attempts: 1,
      })
      expect(await home.sql('select from pg_locks where not granted')).toEqual([])
      expect(slowest).toBeLessThan(2000)
      expect(rounds).toBeGreaterThan(3)
      await client.query('commit')
    } finally {
      hold.resolve()
      await client.end()
    }
  })

  it('leaves no row when the connection is lost before the commit', async () => {
    await using home = await openPgHome()
    const client = new Client({ connectionString: home.url })
    client.on('error', () => {})
    await client.connect()
    await client.query('begin')
    await home.app.enqueue(note, 1, { tx: client })
    const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
    await home.sql('select pg_terminate_backend($1)', [rows[0]?.pid])
    await eventually(
      'the backend is gone',
      async () =>
        (await home.sql('select from pg_stat_activity where pid = $1', [rows[0]?.pid])).length === 0,
    )
    await expect(home.app.enqueue(note, 2, { tx: client })).rejects.toMatchObject({ changed: 'nothing' })
    expect(await home.count()).toBe(0)
  })

  it.each([
    ['right after the commit', 'committed', 1],
    ['before the commit', 'enqueued', 0],
  ] as const)('a producer killed %s has left all or nothing', async (_, message, expected) => {
    await using home = await openPgHome()
    await home.sql(ORDERS)
    await using producer = startProgram('test/integration/programs/confirm.ts', { args: [home.url] })
    const { id } = await producer.message(message)
    await producer.kill()

    await eventually(
      'its backends are gone',
      async () =>
        (
          await home.sql(
            `select from pg_stat_activity where datname = current_database() and application_name like 'holdfast producer%'`,
          )
        ).length === 0,
    )
    expect(await home.sql('select from orders where confirmed')).toHaveLength(expected)
    expect(await home.count()).toBe(expected)
    if (expected === 1) {
      expect(await home.app.job(String(id)).get()).toMatchObject({ state: 'available', attempts: 0 })
      await home.work()
      expect(await home.app.job(String(id)).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
    }
  })

  it('takes one answer for a commit whose acknowledgement was lost, also after the job completed', async () => {
    await using home = await openPgHome()
    await using proxy = await startProxy(home.url)
    const producer = appOver(proxy.url())
    try {
      await producer.enqueue(note, 'warm')
      const lost = proxy.dropAnswer(/enqueue_keyed_jobs/)
      const first = producer.enqueue(note, 'once', { idempotencyKey: 'order-1' })
      await expect(first).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', changed: 'unknown' })
      expect((await lost).tags).toContain('SELECT 1')

      const again = await producer.enqueue(note, 'once', { idempotencyKey: 'order-1' })
      await home.work()
      expect(await home.app.job(again.id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
      const later = await producer.enqueue(note, 'once', { idempotencyKey: 'order-1' })

      expect(again.status).toBe('created')
      expect(later).toEqual(again)
      expect(await home.sql(`select from holdfast.job where input::text = '"once"'`)).toHaveLength(1)
    } finally {
      await producer.close()
    }
  })

  it('tells a lost acknowledgement of a commit from a rollback', async () => {
    await using home = await openPgHome()
    await using proxy = await startProxy(home.url)
    const producer = appOver(proxy.url())
    try {
      await producer.enqueue(note, 'warm')
      const lost = proxy.dropAnswer('commit')
      const ended = producer.transaction(
        async (tx) => await tx.enqueue(note, 'once', { idempotencyKey: 'i' }),
      )
      await expect(ended).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN' })
      expect((await lost).tags).toEqual(['COMMIT'])
      const again = await producer.transaction(
        async (tx) => await tx.enqueue(note, 'once', { idempotencyKey: 'i' }),
      )
      expect(again.status).toBe('created')
      expect(await home.sql(`select from holdfast.job where input::text = '"once"'`)).toHaveLength(1)

      const cut = proxy.dropAnswer(/enqueue_one_job/)
      const before = producer.transaction(async (tx) => await tx.enqueue(note, 'never'))
      await expect(before).rejects.toMatchObject({ code: 'UNAVAILABLE', changed: 'nothing' })
      await cut
      expect(await home.sql(`select from holdfast.job where input::text = '"never"'`)).toEqual([])
    } finally {
      await producer.close()
    }
  })

  it('waits for a worker, listed as available, however long that takes', async () => {
    await using home = await openPgHome()
    const { id } = await home.app.enqueue(note, 1)
    await home.app.close()
    await home.sql(`update holdfast.job set enqueued_at = enqueued_at - interval '1 hour'`)
    expect(await home.sql('select id::text, state from holdfast.jobs')).toEqual([{ id, state: 'available' }])

    const later = appOver(home.url)
    try {
      await later.worker().start()
      expect(await later.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
    } finally {
      await later.close()
    }
  })
})

import { expect, it } from 'vitest'
import { defineJob } from '../../src/index.ts'
import { createDatabase, openPool } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { startProgram } from '../support/processes.ts'
import { startProxy } from '../support/proxy.ts'
import { appOn, openApp } from './apps.ts'
import { anything, Gate } from './handlers.ts'

const producer = 'test/faults/programs/producer.ts'
const sent: string[] = []
const mail = defineJob({
  name: 'mail',
  input: anything<string>(),
  idempotent: true,
  handler: (_, order) => void sent.push(order),
})
const base = { input: anything<null>(), idempotent: true } as const

async function withOrders(leaseMs?: number) {
  const opened = await openApp({ jobs: [mail], ...(leaseMs === undefined ? {} : { leaseMs }) })
  await opened.db.sql('create table orders (id int primary key, confirmed bool not null default false)')
  await opened.db.sql('insert into orders (id) values (1)')
  return opened
}

it('a process SIGKILLed right after its commit leaves the order confirmed and one job, which a worker started later runs', async () => {
  await using opened = await withOrders()
  const { app, db } = opened
  sent.length = 0
  await using child = startProgram(producer, {
    args: [JSON.stringify({ database: db.url, dieAt: 'after commit' })],
  })
  expect(await child.exited).toEqual({ code: null, signal: 'SIGKILL' })
  const { id } = await child.message('enqueued').catch(() => child.messages[0] ?? { kind: '', id: '' })

  expect(await db.sql('select confirmed from orders')).toEqual([{ confirmed: true }])
  expect(await db.sql('select name, state from holdfast.jobs')).toEqual([
    { name: 'mail', state: 'available' },
  ])
  await app.worker().start()
  expect(await app.job(String(id)).wait({ timeoutMs: 20_000 })).toMatchObject({
    state: 'completed',
    attempts: 1,
  })
  expect(sent).toEqual(['order 1'])
})

it('a process SIGKILLed before its commit leaves neither the change nor a job', async () => {
  await using opened = await withOrders()
  const { db } = opened
  await using child = startProgram(producer, {
    args: [JSON.stringify({ database: db.url, dieAt: 'before commit' })],
  })
  expect(await child.exited).toEqual({ code: null, signal: 'SIGKILL' })
  expect(child.messages.map((m) => m.kind)).toEqual(['enqueued'])

  await eventually('its backend has noticed', async () => {
    const rows = await db.sql(
      `select from pg_stat_activity where datname = current_database() and application_name = 'holdfast producer'`,
    )
    return rows.length === 0
  })
  expect(await db.sql('select confirmed from orders')).toEqual([{ confirmed: false }])
  expect(await db.sql('select from holdfast.job')).toEqual([])
  expect(await db.sql('select from holdfast.ready')).toEqual([])
})

it('a body that enqueues and then throws leaves no job and no change, and its error comes out as it was', async () => {
  await using opened = await withOrders()
  const { app, db, events } = opened
  await app.worker().start()
  const problem = new Error('no')

  const running = app.transaction(async (tx) => {
    await tx.query('update orders set confirmed = true')
    await tx.enqueue(mail, 'a')
    throw problem
  })

  await expect(running).rejects.toBe(problem)
  expect(await db.sql('select confirmed from orders')).toEqual([{ confirmed: false }])
  expect(await db.sql('select from holdfast.job')).toEqual([])
  expect(events.of('attempt.started')).toEqual([])
})

it('a deferred constraint that fails at commit leaves no job', async () => {
  await using opened = await withOrders()
  const { app, db } = opened
  await db.sql('create table line (order_id int references orders deferrable initially deferred)')

  const running = app.transaction(async (tx) => {
    await tx.query('insert into line values (99)')
    await tx.enqueue(mail, 'a')
  })

  await expect(running).rejects.toMatchObject({ changed: 'nothing' })
  expect(await db.sql('select from holdfast.job')).toEqual([])
  expect(await db.sql('select from holdfast.ready')).toEqual([])
})

it('a connection dropped before the commit leaves no job, and a lost answer to the commit is told as unknown', async () => {
  await using db = await createDatabase()
  await using proxy = await startProxy(db.url)
  await using opened = appOn(db, { jobs: [mail], database: proxy.url() })
  const { app } = opened

  const dropped = app.transaction(async (tx) => {
    await tx.enqueue(mail, 'dropped')
    proxy.cut()
  })
  await expect(dropped).rejects.toMatchObject({
    name: expect.stringMatching(/UnavailableError|OutcomeUnknownError/),
  })
  const after = await db.sql('select from holdfast.job')
  const hit = proxy.dropAnswer(/^commit/)
  const lost = app.transaction(async (tx) => await tx.enqueue(mail, 'committed'))
  await expect(lost).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', changed: 'unknown' })
  await hit

  expect(after).toEqual([])
  expect(await db.sql('select input from holdfast.job')).toEqual([{ input: 'committed' }])
})

it('a committed job without a worker is listed as waiting and runs when one starts', async () => {
  await using opened = await openApp({ jobs: [mail] })
  const { app, db } = opened
  const { id } = await app.enqueue(mail, 'later')
  await db.sql(`update holdfast.job set enqueued_at = enqueued_at - interval '1 hour'`)

  expect(await app.job(id).get()).toMatchObject({ state: 'available', attempts: 0 })
  await app.worker().start()
  expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
})

it('a business transaction left open after its enqueue makes nobody wait', async () => {
  await using opened = await withOrders(1000)
  const { app, db } = opened
  await app.worker().start()
  const open = await db.connect()
  await open.query('begin')
  await open.query('update orders set confirmed = true')
  const held = await app.enqueue(mail, 'held', { tx: open })
  const beats = async () =>
    (await db.sql<{ at: string }>('select heartbeat_at::text as at from holdfast.worker'))[0]?.at

  const beat = await beats()
  const fromMs = performance.now()
  for (let i = 0; i < 20; i += 1) {
    const { id } = await app.enqueue(mail, `other ${i}`)
    expect(await app.job(id).wait({ timeoutMs: 2000 })).toMatchObject({ state: 'completed' })
  }
  const tookMs = performance.now() - fromMs

  expect(tookMs).toBeLessThan(5000)
  await eventually('the heartbeat goes on', async () => (await beats()) !== beat)
  expect(
    await db.sql(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    ),
  ).toEqual([])
  await open.query('commit')
  expect(await app.job(held.id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
})

it('while a handler waits for a provider its worker holds no transaction open', async () => {
  const gate = new Gate()
  const job = defineJob({ ...base, name: 'provider', handler: async () => await gate.wait() })
  await using opened = await openApp({ jobs: [job], leaseMs: 1000 })
  const { app, db } = opened
  await app.worker().start()
  await app.enqueueMany(Array.from({ length: 5 }, () => ({ job, input: null })))
  await eventually('all wait', () => gate.waiting === 5)

  for (let look = 0; look < 20; look += 1) {
    const rows = await db.sql(
      `select state, query from pg_stat_activity where datname = current_database() and application_name like 'holdfast%'
       and (state like 'idle in transaction%' or xact_start < now() - interval '200 ms')`,
    )
    expect(rows).toEqual([])
  }
  gate.open()
})

it('a completion that cannot be recorded leaves the job uncompleted: another attempt follows, the first is told as unknown', async () => {
  const attempts: number[] = []
  const gate = new Gate()
  const job = defineJob({
    ...base,
    name: 'accepted',
    async handler(ctx) {
      attempts.push(ctx.job.attempt)
      if (ctx.job.attempt === 1) await gate.wait()
    },
  })
  await using db = await createDatabase()
  await using proxy = await startProxy(db.url)
  await using cutOff = appOn(db, { jobs: [job], database: proxy.url(), leaseMs: 1000 })
  await using other = appOn(db, { jobs: [job], leaseMs: 1000 })
  await cutOff.app.worker().start()
  const { id } = await other.app.enqueue(job, null)
  await eventually('it runs', () => gate.waiting === 1)
  // The provider has accepted; now the database is away for this worker.
  proxy.refuse()
  proxy.cut()
  gate.open()
  await other.app.worker().start()

  expect(await other.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
    state: 'completed',
    attempts: 2,
  })
  expect(attempts).toEqual([1, 2])
  const [first] = await db.sql<{ ended: string; message: string }>(
    `select ended::text, error ->> 'message' as message from holdfast.attempt where job_id = $1`,
    [id],
  )
  expect(first?.ended).toBe('worker-lost')
  expect(first?.message).toContain('what the attempt did is unknown')
  proxy.pass()
  // The late write of the first is refused, if it still tries.
  expect(cutOff.events.of('job.completed')).toEqual([])
})

it('enqueue, claim and end of a job are facts of their own, and executing never reads as completed', async () => {
  const gate = new Gate()
  const job = defineJob({ ...base, name: 'facts', handler: async () => await gate.wait() })
  await using opened = await openApp({ jobs: [job] })
  const { app, db } = opened
  const { id } = await app.enqueue(job, null)
  const waiting = await app.job(id).get()
  await app.worker().start()
  await eventually('it runs', () => gate.waiting === 1)
  const executing = await app.job(id).get()
  gate.open()
  await app.job(id).wait({ timeoutMs: 20_000 })
  const ended = await app.job(id).get()

  expect(waiting).toMatchObject({ state: 'available', workerId: null, fencingToken: null, finishedAt: null })
  expect(executing).toMatchObject({ state: 'executing', attempts: 1, finishedAt: null, result: null })
  expect(executing?.workerId).toMatch(/^\d+$/)
  expect(executing?.fencingToken).toMatch(/^\d+$/)
  expect(ended).toMatchObject({ state: 'completed', workerId: null })
  expect(ended?.finishedAt?.getTime()).toBeGreaterThanOrEqual(ended?.enqueuedAt.getTime() ?? Infinity)
  expect(await db.sql('select from holdfast.lease')).toEqual([])
})

it('pool of 2, concurrency 20, 100 jobs that each enqueue a child in a transaction: all done once, no lease lost', async () => {
  const child = defineJob({ ...base, name: 'child', handler: () => {} })
  const parent = defineJob({
    ...base,
    name: 'parent',
    async handler(): Promise<void> {
      await opened.app.transaction(async (tx) => {
        await tx.enqueue(child, null)
        await tx.query('select pg_sleep(0.02)')
      })
      await new Promise((resolve) => setTimeout(resolve, 1500))
    },
  })
  await using opened = await openApp({
    jobs: [parent, child],
    queues: { default: { concurrency: 20 } },
    leaseMs: 1000,
    maxConnections: 2,
  })
  const { app, db, events } = opened
  await app.worker().start()
  await app.enqueueMany(Array.from({ length: 100 }, () => ({ job: parent, input: null })))

  await eventually('all are done', async () => (await db.sql('select from holdfast.outcome')).length === 200)

  expect(
    await db.sql('select name, count(*)::int as n from holdfast.job group by name order by name'),
  ).toEqual([
    { name: 'child', n: 100 },
    { name: 'parent', n: 100 },
  ])
  expect(await db.sql('select distinct attempts::int, state::text from holdfast.outcome')).toEqual([
    { attempts: 1, state: 'completed' },
  ])
  expect(events.of('lease.lost')).toEqual([])
  expect(events.of('jobs.rescued')).toEqual([])
})

for (const [kind, max] of [
  ["the library's", undefined],
  ["the user's", 6],
] as const) {
  it(`handlers that hold every connection of ${kind} pool for longer than a lease do not stop heartbeats`, async () => {
    const gate = new Gate()
    await using db = await createDatabase()
    const pool = max === undefined ? undefined : openPool({ connectionString: db.url, max })
    const job = defineJob({
      ...base,
      name: 'greedy',
      async handler(): Promise<void> {
        await opened.app.transaction(async (tx) => {
          await tx.query('select 1')
          await gate.wait()
        })
      },
    })
    await using opened = appOn(db, {
      jobs: [job],
      leaseMs: 1000,
      ...(pool ? { database: pool } : { maxConnections: 2 }),
    })
    await opened.app.worker().start()
    await using producer = appOn(db, { jobs: [job] })
    await producer.app.enqueueMany(Array.from({ length: 8 }, () => ({ job, input: null })))
    await eventually('the pool is full', () => gate.waiting >= 2)
    await new Promise((resolve) => setTimeout(resolve, 3000))
    gate.open()

    await eventually('all are done', async () => (await db.sql('select from holdfast.outcome')).length === 8)
    expect(opened.events.of('lease.lost')).toEqual([])
    expect(await db.sql('select distinct attempts::int from holdfast.outcome')).toEqual([{ attempts: 1 }])
    await opened.app.close()
    await pool?.end()
  })
}

it("a worker takes nothing from a pool of the user's: with every client of it in use, jobs run and leases are kept", async () => {
  await using db = await createDatabase()
  const pool = openPool({ connectionString: db.url, max: 2 })
  await using opened = appOn(db, { jobs: [mail], database: pool, leaseMs: 3000 })
  const worker = opened.app.worker()
  await worker.start()
  const { id: workerId } = worker

  const held = [await pool.connect(), await pool.connect()]
  try {
    const enqueued = await db.sql<{ id: string }>(`select id::text from holdfast.enqueue($1, '{}')`, [
      mail.name,
    ])
    await eventually('the job is completed', async () => {
      const ended = await db.sql('select from holdfast.outcome where job_id = $1', [enqueued[0]?.id])
      return ended.length === 1
    })
    // Longer than two leases: heartbeats go on without the pool.
    await new Promise((resolve) => setTimeout(resolve, 7000))

    expect(worker.id).toBe(workerId)
  } finally {
    for (const client of held) client.release()
  }
  await opened.app.close()
  await pool.end()
})

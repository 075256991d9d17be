import { getEventListeners, setMaxListeners } from 'node:events'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect, it } from 'vitest'
import { Wakeup } from '../../src/base/wakeup.ts'
import { defineJob, ShutdownError } from '../../src/index.ts'
import { runExchange } from '../../src/worker/exchange.ts'
import { Outbox } from '../../src/worker/outbox.ts'
import { Pace } from '../../src/worker/pace.ts'
import { Slots } from '../../src/worker/slots.ts'
import { appOn, openApp, openEmbeddedApp } from '../faults/apps.ts'
import { aborted, anything, Gate } from '../faults/handlers.ts'
import { createDatabase } from '../support/database.ts'
import { eventually, withResolvers } from '../support/eventually.ts'
import { startProgram } from '../support/processes.ts'
import { startProxy } from '../support/proxy.ts'

const program = 'test/faults/programs/worker.ts'
const base = { input: anything<null>(), idempotent: true } as const
const errand = defineJob({
  name: 'errand',
  input: anything<{ readonly act: string; readonly ms?: number }>(),
  idempotent: true,
  handler: () => {},
})

it('stop lets running jobs end within its limit, records them, and claims nothing more', async () => {
  const job = defineJob({
    ...base,
    name: 'second',
    handler: async () => await new Promise((r) => setTimeout(r, 1000)),
  })
  await using opened = await openApp({
    jobs: [job],
    queues: { default: { concurrency: 3 } },
    shutdownMs: 5000,
  })
  const { app, db, events } = opened
  const worker = app.worker()
  await worker.start()
  const running = await app.enqueueMany([1, 2, 3].map(() => ({ job, input: null })))
  await eventually('three run', () => worker.running === 3)
  const [later] = await app.enqueueMany([{ job, input: null }])

  await worker.stop()

  const states = await db.sql('select id::text, state, attempts::int from holdfast.jobs order by jobs.id')
  expect(states).toEqual([
    ...running.map(({ id }) => ({ id, state: 'completed', attempts: 1 })),
    { id: later?.id, state: 'available', attempts: 0 },
  ])
  expect(events.of('attempt.started')).toHaveLength(3)
  expect(await db.sql('select from holdfast.worker')).toEqual([])
  expect(await db.sql('select from holdfast.lease')).toEqual([])
})

it('after its limit stop aborts the signals, and hands back at once, uncounted, what ignores them', async () => {
  const reasons: unknown[] = []
  const job = defineJob({
    ...base,
    name: 'deaf',
    maxAttempts: 1,
    async handler(ctx) {
      ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason))
      await new Promise((resolve) => setTimeout(resolve, 3000))
    },
  })
  const polite = defineJob({
    ...base,
    name: 'polite',
    async handler(ctx) {
      await aborted(ctx.signal)
      return 'wrote its last'
    },
  })
  await using opened = await openApp({ jobs: [job, polite], shutdownMs: 200, shutdownGraceMs: 300 })
  const { app, db } = opened
  const worker = app.worker()
  await worker.start()
  const deaf = await app.enqueueMany([1, 2, 3].map(() => ({ job, input: null })))
  const kind = await app.enqueue(polite, null)
  await eventually('all run', () => worker.running === 4)

  const fromMs = performance.now()
  await worker.stop()

  expect(performance.now() - fromMs).toBeLessThan(200 + 300 + 1000)
  expect(reasons).toHaveLength(3)
  expect(reasons[0]).toBeInstanceOf(ShutdownError)
  for (const { id } of deaf)
    expect(await app.job(id).get()).toMatchObject({ state: 'available', attempts: 0 })
  // What ended in the grace is recorded: the final write reached the database.
  expect(await app.job(kind.id).get()).toMatchObject({ state: 'completed', result: 'wrote its last' })
  expect(await db.sql('select ended::text, attempt::int from holdfast.attempt')).toEqual(
    deaf.map(() => ({ ended: 'interrupted', attempt: 1 })),
  )
  expect(await db.sql('select from holdfast.lease')).toEqual([])
})

it('what was handed back starts elsewhere without waiting for the lease', async () => {
  const job = defineJob({
    ...base,
    name: 'long',
    handler: async (ctx) =>
      ctx.job.attempt === 1 && first.running ? await new Promise(() => {}) : 'elsewhere',
  })
  await using db = await createDatabase()
  const first = { running: true }
  await using one = appOn(db, { jobs: [job], leaseMs: 60_000 })
  await using two = appOn(db, { jobs: [job], leaseMs: 60_000, maxPollMs: 60_000 })
  const worker = one.app.worker()
  await worker.start()
  const { id } = await one.app.enqueue(job, null)
  await one.events.first('attempt.started')
  await two.app.worker().start()
  await two.events.first('worker.started')
  first.running = false

  await worker.stop()

  expect(await two.app.job(id).wait({ timeoutMs: 2000 })).toMatchObject({ state: 'completed', attempts: 1 })
})

it('jobs in the buffer and of a claim under way go back unburnt when stop is called', async () => {
  const gate = new Gate()
  const job = defineJob({ ...base, name: 'held', maxAttempts: 5, handler: async () => await gate.wait() })
  await using db = await createDatabase()
  await using proxy = await startProxy(db.url)
  await using opened = appOn(db, { jobs: [job], database: proxy.url(), shutdownMs: 0, shutdownGraceMs: 0 })
  const { app } = opened
  const worker = app.worker()
  await worker.start()
  // The claim is answered late, and stop comes in between.
  const claiming = new Promise<void>((resolve) => {
    proxy.events.on('statement', ({ text }) => {
      if (!text.includes('claim')) return
      proxy.delay(400)
      resolve()
    })
  })
  await using producer = appOn(db, { jobs: [job] })
  await producer.app.enqueueMany(Array.from({ length: 5 }, () => ({ job, input: null })))
  await claiming

  await worker.stop()

  expect(
    await db.sql('select count(*)::int as n, max(attempts)::int as attempts from holdfast.ready'),
  ).toEqual([{ n: 5, attempts: 0 }])
  expect(await db.sql('select from holdfast.lease')).toEqual([])
  expect(await db.sql('select from holdfast.worker')).toEqual([])
  gate.open()
})

it('jobs that the lost answer of a claim hid are handed back, unburnt, by stop', async () => {
  const job = defineJob({ ...base, name: 'plain', maxAttempts: 1, handler: () => {} })
  await using db = await createDatabase()
  await using proxy = await startProxy(db.url)
  await using opened = appOn(db, { jobs: [job], database: proxy.url() })
  await using producer = appOn(db, { jobs: [job] })
  const { id } = await producer.app.enqueue(job, null)
  const hit = proxy.dropAnswer(/claim_(few_)?jobs/)
  const worker = opened.app.worker()
  await worker.start()
  await hit
  await opened.events.first('worker.error')
  const [held] = await db.sql('select state from holdfast.jobs')

  await worker.stop()

  expect(held).toEqual({ state: 'executing' })
  expect(await producer.app.job(id).get()).toMatchObject({ state: 'available', attempts: 0 })
  expect(await db.sql('select from holdfast.lease')).toEqual([])
  expect(opened.events.of('job.discarded')).toEqual([])
})

it('jobs hidden by the lost answer of a claim run once the worker goes on', async () => {
  const job = defineJob({ ...base, name: 'plain', maxAttempts: 1, handler: () => 'ran' })
  await using db = await createDatabase()
  await using proxy = await startProxy(db.url)
  await using opened = appOn(db, { jobs: [job], database: proxy.url(), maxPollMs: 500 })
  await using producer = appOn(db, { jobs: [job] })
  const { id } = await producer.app.enqueue(job, null)
  const hit = proxy.dropAnswer(/claim_(few_)?jobs/)
  await opened.app.worker().start()
  expect((await hit).tags).toEqual(['SELECT 1'])

  expect(await producer.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
    state: 'completed',
    attempts: 1,
    result: 'ran',
  })
  expect(await db.sql('select from holdfast.lease')).toEqual([])
})

for (const [kind, open] of [
  ['PostgreSQL', openApp],
  ['PGlite', openEmbeddedApp],
] as const) {
  it(`start and stop may come in any order, any number of times, and in parallel (${kind})`, async () => {
    const job = defineJob({ ...base, name: 'plain', handler: () => {} })
    await using opened = await open({ jobs: [job] })
    const { app, events } = opened
    const [one, two, three] = [app.worker(), app.worker(), app.worker()]

    await one.stop()
    await one.start()
    await Promise.all([two.start(), two.start(), two.start()])
    const { id } = await app.enqueue(job, null)
    await app.job(id).wait({ timeoutMs: 20_000 })
    await Promise.all([two.stop(), two.stop(), two.start(), two.stop()])
    await Promise.all([three.start(), three.stop()])

    expect(events.of('worker.started')).toHaveLength(2)
    expect(events.of('worker.stopped')).toHaveLength(2)
    expect(events.of('worker.error')).toEqual([])
  })
}

it('a start that failed can be repeated', async () => {
  const job = defineJob({ ...base, name: 'plain', handler: () => {} })
  await using db = await createDatabase()
  await using proxy = await startProxy(db.url)
  await using opened = appOn(db, { jobs: [job], database: proxy.url() })
  const worker = opened.app.worker()
  proxy.refuse()
  await expect(worker.start()).rejects.toMatchObject({ code: 'UNAVAILABLE' })

  proxy.pass()
  await worker.start()

  const { id } = await opened.app.enqueue(job, null)
  expect(await opened.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
  expect(await db.sql('select from holdfast.worker')).toHaveLength(1)
})

it('a stop while a new life begins leaves no worker behind', async () => {
  const job = defineJob({ ...base, name: 'plain', handler: () => {} })
  await using opened = await openApp({ jobs: [job], leaseMs: 1000 })
  const { app, db, events } = opened
  const worker = app.worker()
  await worker.start()
  await db.sql('delete from holdfast.worker')
  await events.first('lease.lost')

  await worker.stop()

  expect(await db.sql('select from holdfast.worker')).toEqual([])
  await eventually('its connections are gone', async () => {
    const rows = await db.sql(
      `select from pg_stat_activity where datname = current_database() and application_name = 'holdfast test' and query like '%renew%'`,
    )
    return rows.length === 0
  })
})

it('SIGTERM lets a process end its jobs, tells handlers that take too long, and the process exits by itself', async () => {
  await using opened = await openApp({ jobs: [errand] })
  await using worker = startProgram(program, {
    args: [
      JSON.stringify({ database: opened.db.url, leaseMs: 30_000, shutdownMs: 1500, shutdownGraceMs: 500 }),
    ],
  })
  await worker.message('ready')
  const quick = await opened.app.enqueue(errand, { act: 'sleep', ms: 300 })
  const polite = await opened.app.enqueue(errand, { act: 'wait' })
  await worker.message('handling', { where: (m) => m['act'] === 'wait' })
  await worker.message('handling', { where: (m) => m['act'] === 'sleep' })

  worker.signal('SIGTERM')
  await worker.message('stopping')
  const after = await opened.app.enqueue(errand, { act: 'return' })
  const exit = await worker.exited

  expect(exit).toEqual({ code: 0, signal: null })
  expect(worker.messages.filter((m) => m.kind === 'aborted')).toMatchObject([
    { job: polite.id, reason: 'ShutdownError' },
  ])
  expect(await opened.app.job(quick.id).get()).toMatchObject({ state: 'completed', attempts: 1 })
  expect(await opened.app.job(polite.id).get()).toMatchObject({ state: 'available', attempts: 0 })
  expect(await opened.app.job(after.id).get()).toMatchObject({ state: 'available', attempts: 0 })
  expect(await opened.db.sql('select from holdfast.worker')).toEqual([])
})

it('a rolling restart by SIGTERM loses and doubles nothing', async () => {
  await using opened = await openApp({ jobs: [errand] })
  const settings = JSON.stringify({ database: opened.db.url, leaseMs: 5000, shutdownMs: 2000 })
  await opened.app.enqueueMany(
    Array.from({ length: 300 }, () => ({ job: errand, input: { act: 'sleep', ms: 250 } })),
  )
  const seen: unknown[] = []
  let current = startProgram(program, { args: [settings] })
  for (let restart = 0; restart < 2; restart += 1) {
    await current.message('handled')
    const next = startProgram(program, { args: [settings] })
    await next.message('ready')
    current.signal('SIGTERM')
    await current.exited
    seen.push(...current.messages.filter((m) => m.kind === 'handled').map((m) => m['job']))
    current = next
  }
  await eventually(
    'all are done',
    async () => (await opened.db.sql('select from holdfast.outcome')).length === 300,
    { deadlineMs: 30_000 },
  )
  current.signal('SIGTERM')
  await current.exited
  seen.push(...current.messages.filter((m) => m.kind === 'handled').map((m) => m['job']))

  expect(seen).toHaveLength(300)
  expect(new Set(seen).size).toBe(300)
  expect(await opened.db.sql('select distinct state::text, attempts::int from holdfast.outcome')).toEqual([
    { state: 'completed', attempts: 1 },
  ])
})

it('a listener or logger that throws or rejects has no effect on jobs, and is reported once per event', async () => {
  const broken = () => {
    throw new Error('logger')
  }
  const job = defineJob({ ...base, name: 'plain', maxAttempts: 2, handler: () => 'ran' })
  await using opened = await openApp({
    jobs: [job],
    logger: { debug: broken, info: broken, warn: broken, error: broken } as never,
  })
  const { app, events } = opened
  app.events.on('attempt.started', () => {
    throw new Error('thrown')
  })
  app.events.on('job.completed', async () => await Promise.reject(new Error('rejected')))
  app.events.on('listener.failed', () => {
    throw new Error('this too')
  })
  await app.worker().start()
  const ids: string[] = []
  for (let i = 0; i < 5; i += 1) ids.push((await app.enqueue(job, null)).id)

  for (const id of ids)
    expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed', attempts: 1 })
  await eventually('every failure was told', () => events.of('listener.failed').length === 10)
  expect(events.of('attempt.started')).toHaveLength(5)
})

it('backends that end while idle harm neither the process nor the next job', async () => {
  const job = defineJob({ ...base, name: 'plain', handler: () => 'ran' })
  await using opened = await openApp({ jobs: [job], maxPollMs: 500 })
  const { app, db } = opened
  await app.worker().start()
  await eventually('it waits', async () => (await db.sql('select from holdfast.waiter')).length)
  await db.sql(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'holdfast test'`,
  )

  const { id } = await eventually('an enqueue works again', async () => await app.enqueue(job, null))

  expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
})

function collectGarbage(): void {
  setFlagsFromString('--expose-gc')
  const gc = runInNewContext('gc') as () => void
  for (let i = 0; i < 4; i += 1) gc()
}

it('20,000 empty polls leave no memory, listener or timer behind', async () => {
  const warnings: string[] = []
  const onWarning = (warning: Error) => void warnings.push(warning.name)
  process.on('warning', onWarning)
  const stop = new AbortController()
  const wakeup = new Wakeup()
  const pace = new Pace(['default'], 10)
  let polls = 0
  let heap = 0
  let timers = 0
  const { promise, resolve } = withResolvers<void>()
  const done = runExchange(
    {
      slots: [new Slots('default', 10, () => {})],
      outbox: new Outbox(),
      pace,
      wakeup,
      trade: async () => {
        polls += 1
        if (polls === 2000) {
          collectGarbage()
          heap = process.memoryUsage().heapUsed
          timers = timersNow()
        }
        if (polls === 22_000) resolve()
        // The next poll in 1 ms, through the same sleep as ever.
        if (polls < 22_000) setImmediate(() => (pace.wake(), wakeup.wake()))
        return { jobs: [], passedOver: false }
      },
      sawParked: () => false,
      claimParked: async () => [],
      settleOthers: async () => {},
      settleBeside: undefined,
      setWaiting: async () => {},
      life: () => 1n,
      handBack: () => {},
      onError: (error) => {
        throw error
      },
      retryDelayMs: () => 1,
      isStopping: () => false,
    },
    stop.signal,
  )
  await promise
  collectGarbage()
  const grownBytes = process.memoryUsage().heapUsed - heap
  const listeners = getEventListeners(stop.signal, 'abort').length
  stop.abort()
  await done

  expect(grownBytes).toBeLessThan(5_000_000)
  expect(listeners).toBeLessThanOrEqual(1)
  expect(timersNow()).toBeLessThanOrEqual(timers)
  expect(warnings).toEqual([])
  process.off('warning', onWarning)
})

function timersNow(): number {
  return process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length
}

it('5,000 jobs that look at their signal and share one of their own leave no listeners and little memory', async () => {
  const shared = new AbortController()
  setMaxListeners(20, shared.signal)
  const job = defineJob({
    ...base,
    name: 'looks',
    async handler(ctx) {
      const stop = () => {}
      shared.signal.addEventListener('abort', stop)
      ctx.signal.addEventListener('abort', stop)
      await new Promise((resolve) => setImmediate(resolve))
      shared.signal.removeEventListener('abort', stop)
    },
  })
  await using opened = await openApp({ jobs: [job] })
  const { app, db } = opened
  const warnings: string[] = []
  const onWarning = (warning: Error) => void warnings.push(warning.name)
  process.on('warning', onWarning)
  await app.worker().start()
  const round = async (count: number, total: number) => {
    await app.enqueueMany(Array.from({ length: count }, () => ({ job, input: null })))
    await eventually(
      'all are done',
      async () =>
        Number((await db.sql('select count(*)::int as n from holdfast.outcome'))[0]?.['n']) === total,
    )
  }
  await round(1000, 1000)
  collectGarbage()
  const before = process.memoryUsage().heapUsed
  opened.events.all.length = 0
  await round(5000, 6000)
  opened.events.all.length = 0
  collectGarbage()

  expect(process.memoryUsage().heapUsed - before).toBeLessThan(5_000_000)
  expect(warnings).toEqual([])
  process.off('warning', onWarning)
})

it('an application that has been closed leaves nothing that keeps a process alive', async () => {
  await using opened = await openApp({ jobs: [errand] })
  await using worker = startProgram(program, { args: [JSON.stringify({ database: opened.db.url })] })
  await worker.message('ready')

  const fromMs = performance.now()
  worker.send({ kind: 'stop' })
  await worker.message('stopped')
  const exit = await worker.exited

  expect(exit.code).toBe(0)
  expect(performance.now() - fromMs).toBeLessThan(5000)
})

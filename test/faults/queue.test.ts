import { expect, it } from 'vitest'
import { z } from 'zod'
import { pauseQueue, resumeQueue } from '../../src/admin/queues.ts'
import { CompositionError, defineApp, defineJob, InvalidArgumentError } from '../../src/index.ts'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { startProgram } from '../support/processes.ts'
import { appOn, openApp } from './apps.ts'
import { anything, Gate } from './handlers.ts'

const base = { input: anything<unknown>(), idempotent: true } as const

it('a producer never runs handlers, and a worker process opens no listening socket', async () => {
  const job = defineJob({ ...base, name: 'errand', handler: () => {} })
  await using opened = await openApp({ jobs: [job] })
  await using worker = startProgram('test/faults/programs/worker.ts', {
    args: [JSON.stringify({ database: opened.db.url })],
  })
  const ready = await worker.message('ready')
  const { id } = await opened.app.enqueue(job, { act: 'return' })
  await opened.app.job(id).wait({ timeoutMs: 20_000 })

  expect(ready['resources']).not.toContain('TCPServerWrap')
  expect(opened.events.of('attempt.started')).toEqual([])
  expect(worker.messages.filter((m) => m.kind === 'handled')).toHaveLength(1)
})

it('a job that an older worker does not know is left, uncounted and reported, and the newer one runs it', async () => {
  const known = defineJob({ ...base, name: 'known', handler: () => 'ran' })
  const newer = defineJob({ ...base, name: 'newer', maxAttempts: 1, handler: () => 'ran' })
  await using db = await createDatabase()
  await using old = appOn(db, { jobs: [known], maxPollMs: 500 })
  await using current = appOn(db, { jobs: [known, newer], maxPollMs: 500 })
  await old.app.worker().start()
  const { id } = await current.app.enqueue(newer, null)
  const parked = await old.events.first('job.parked')
  await eventually('it is recorded', async () => (await db.sql('select from holdfast.parked')).length)
  const waiting = await current.app.job(id).get()
  const other = await current.app.enqueue(known, null)
  await current.app.job(other.id).wait({ timeoutMs: 3000 })

  await current.app.worker().start()

  expect(parked).toMatchObject({
    jobId: id,
    reason: expect.stringContaining('does not know the job "newer"'),
  })
  expect(waiting).toMatchObject({ state: 'available', attempts: 0, reason: expect.stringContaining('newer') })
  expect(await current.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
    state: 'completed',
    attempts: 1,
  })
  // The old one does not claim it again and again.
  expect(old.events.of('job.parked')).toHaveLength(1)
})

it('an input that the worker’s schema refuses is parked before the handler, uncounted; a worker that accepts it runs it', async () => {
  const called: string[] = []
  const asStrict = defineJob({
    ...base,
    input: z.string(),
    name: 'job',
    maxAttempts: 1,
    handler: () => void called.push('strict'),
  })
  const asLoose = defineJob({
    ...base,
    input: z.any(),
    name: 'job',
    maxAttempts: 1,
    handler: () => void called.push('loose'),
  })
  await using db = await createDatabase()
  await using one = appOn(db, { jobs: [asStrict], maxPollMs: 500 })
  await using two = appOn(db, { jobs: [asLoose], maxPollMs: 500 })
  await one.app.worker().start()
  const { id } = await two.app.enqueue(asLoose, { not: 'text' })
  await one.events.first('job.parked')
  await eventually('it is recorded', async () => (await db.sql('select from holdfast.parked')).length)
  const waiting = await two.app.job(id).get()

  await two.app.worker().start()

  expect(waiting).toMatchObject({ state: 'available', attempts: 0 })
  expect(await two.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed', attempts: 1 })
  expect(called).toEqual(['loose'])
})

it('rows left in a queue that no worker serves any more are not lost: they wait, listed, until one serves it', async () => {
  const moved = defineJob({ ...base, queue: 'old', name: 'moved', handler: () => 'ran' })
  const now = defineJob({ ...base, queue: 'new', name: 'moved', handler: () => 'ran' })
  await using db = await createDatabase()
  await using before = appOn(db, { jobs: [moved], queues: { old: {} } })
  await using after = appOn(db, { jobs: [now], queues: { new: {} } })
  const { id } = await before.app.enqueue(moved, null)
  await after.app.worker().start()
  const next = await after.app.enqueue(now, null)
  await after.app.job(next.id).wait({ timeoutMs: 20_000 })
  expect(await db.sql('select queue, state from holdfast.jobs where id = $1', [id])).toEqual([
    { queue: 'old', state: 'available' },
  ])

  await using drain = appOn(db, { jobs: [now], queues: { new: {}, old: {} } })
  await drain.app.worker({ queues: ['old'] }).start()

  expect(await before.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
})

it('two applications in one process keep their handlers apart', async () => {
  const ran: string[] = []
  const make = (who: string) => defineJob({ ...base, name: 'same', handler: () => void ran.push(who) })
  const [a, b] = [make('a'), make('b')]
  await using one = await openApp({ jobs: [a] })
  await using two = await openApp({ jobs: [b] })
  await one.app.worker().start()
  await two.app.worker().start()
  const first = await one.app.enqueue(a, null)
  await one.app.job(first.id).wait({ timeoutMs: 20_000 })
  const second = await two.app.enqueue(b, null)
  await two.app.job(second.id).wait({ timeoutMs: 20_000 })

  expect(ran).toEqual(['a', 'b'])
})

it('a saturated slow queue leaves the latency of a fast one as it was', async () => {
  const gate = new Gate()
  const slow = defineJob({ ...base, queue: 'slow', name: 'slow', handler: async () => await gate.wait() })
  const fast = defineJob({ ...base, queue: 'fast', name: 'fast', handler: () => 'ran' })
  await using opened = await openApp({
    jobs: [slow, fast],
    queues: { slow: { concurrency: 1 }, fast: { concurrency: 10 } },
  })
  const { app, db } = opened
  await app.worker().start()
  await app.enqueueMany(Array.from({ length: 200 }, () => ({ job: slow, input: null })))
  await eventually('the slow queue is saturated', () => gate.waiting === 1)

  const tookMs: number[] = []
  for (let i = 0; i < 20; i += 1) {
    const { id } = await app.enqueue(fast, null)
    await app.job(id).wait({ timeoutMs: 3000 })
    const [row] = await db.sql<{ ms: number }>(
      `select extract(epoch from o.finished_at - j.enqueued_at)::float8 * 1000 as ms from holdfast.outcome o join holdfast.job j on j.id = o.job_id where j.id = $1`,
      [id],
    )
    tookMs.push(row?.ms ?? Infinity)
  }

  expect(tookMs.sort((a, b) => a - b)[10]).toBeLessThan(150)
  expect(
    await db.sql(`select count(*)::int as n from holdfast.jobs where queue = 'slow' and state = 'executing'`),
  ).toEqual([{ n: 1 }])
  gate.open()
})

it('jobs that have cost two workers their life run one after the other, with no poll in between', async () => {
  let running = 0
  let most = 0
  const job = defineJob({
    ...base,
    name: 'suspect',
    async handler() {
      running += 1
      most = Math.max(most, running)
      await new Promise((resolve) => setTimeout(resolve, 50))
      running -= 1
    },
  })
  await using opened = await openApp({ jobs: [job], maxPollMs: 60_000 })
  const { app, db } = opened
  const jobs = await app.enqueueMany(Array.from({ length: 4 }, () => ({ job, input: null })))
  await db.sql('update holdfast.ready set crashes = 2, attempts = 2, care = 2')

  await app.worker().start()

  for (const { id } of jobs) {
    expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed', attempts: 3 })
  }
  expect(most).toBe(1)
})

it('a worker limited to one queue claims only that', async () => {
  const a = defineJob({ ...base, queue: 'a', name: 'a', handler: () => {} })
  const b = defineJob({ ...base, queue: 'b', name: 'b', handler: () => {} })
  await using opened = await openApp({ jobs: [a, b], queues: { a: {}, b: {} } })
  const { app } = opened
  await app.worker({ queues: ['a'] }).start()
  const left = await app.enqueue(b, null)
  const ran = await app.enqueue(a, null)

  await app.job(ran.id).wait({ timeoutMs: 20_000 })

  expect(await app.job(left.id).get()).toMatchObject({ state: 'available', attempts: 0 })
})

it('a malformed queue setting is refused before anything starts', () => {
  const job = defineJob({ ...base, queue: 'a', name: 'a', handler: () => {} })
  const define = (queues: never) => () =>
    defineApp({ name: 'x', database: 'postgres://localhost/x', jobs: [job], queues })
  for (const concurrency of [0, -1, 2.5, Number.NaN, '3', 10_001]) {
    expect(define({ a: { concurrency } } as never)).toThrow(CompositionError)
  }
  expect(define({ b: {} } as never)).toThrow(/job "a" goes to queue "a", which is not configured/)
  const app = defineApp({ name: 'x', database: 'postgres://localhost/x', jobs: [job], queues: { a: {} } })
  expect(() => app.worker({ queues: ['c'] })).toThrow(InvalidArgumentError)
  expect(() => app.worker({ queues: [] })).toThrow(InvalidArgumentError)
  expect(() => app.worker({ concurrency: { a: 0 } })).toThrow(InvalidArgumentError)
})

it('one slow job does not hold back quick ones, and never more are claimed than there are slots for jobs not known as fast', async () => {
  const gate = new Gate()
  const done: string[] = []
  const job = defineJob({
    ...base,
    name: 'mixed',
    async handler(_, kind) {
      if (kind === 'slow') await gate.wait()
      else await new Promise((resolve) => setTimeout(resolve, 25))
      done.push(String(kind))
    },
  })
  await using opened = await openApp({ jobs: [job], queues: { default: { concurrency: 5 } } })
  const { app, db } = opened
  const worker = app.worker()
  await worker.start()
  await app.enqueueMany(['slow', ...Array(40).fill('quick')].map((input: string) => ({ job, input })))
  let most = 0
  await eventually('the quick ones are done', async () => {
    const [row] = await db.sql<{ n: number }>(
      `select count(*)::int as n from holdfast.jobs where state = 'executing'`,
    )
    most = Math.max(most, row?.n ?? 0)
    return done.length === 40
  })

  expect(done).not.toContain('slow')
  // Five handlers, and those that have ended but are not recorded yet.
  expect(most).toBeLessThanOrEqual(10)
  gate.open()
})

it('claimed jobs whose slots stay busy go back to others within moments, uncounted', async () => {
  const gate = new Gate()
  let blocked = false
  const job = defineJob({
    ...base,
    name: 'turns',
    handler: async () => (blocked ? await gate.wait() : undefined),
  })
  await using db = await createDatabase()
  await using one = appOn(db, { jobs: [job], queues: { default: { concurrency: 2 } } })
  await using two = appOn(db, { jobs: [job], queues: { default: { concurrency: 50 } }, maxPollMs: 300 })
  await one.app.worker().start()
  // Fast until now, so that jobs are claimed ahead; then the handlers stay.
  await one.app.enqueueMany(Array.from({ length: 400 }, () => ({ job, input: null })))
  await eventually('the worker believes in speed', () => one.events.of('job.completed').length >= 300)
  blocked = true
  await one.app.enqueueMany(Array.from({ length: 40 }, () => ({ job, input: null })))
  await one.events.first('jobs.handedBack', (e) => e.why === 'busy')
  blocked = false
  await two.app.worker().start()

  await eventually(
    'others have done them',
    async () => (await db.sql('select from holdfast.outcome')).length >= 438,
  )

  const [row] = await db.sql('select max(attempts)::int as attempts from holdfast.outcome')
  expect(row).toEqual({ attempts: 1 })
  gate.open()
})

it('a paused queue starts nothing that is rescued, retried or falls due, over restarts; a resume starts all at once', async () => {
  const gate = new Gate()
  const job = defineJob({
    ...base,
    name: 'paused',
    retry: { type: 'fixed', delayMs: 100 },
    async handler(ctx, kind) {
      if (kind === 'fails' && ctx.job.attempt === 1) {
        await gate.wait()
        throw new Error('no')
      }
    },
  })
  await using opened = await openApp({ jobs: [job], maxPollMs: 60_000, shutdownMs: 2000 })
  const { app, db, events } = opened
  const { database } = app.internals
  const worker = app.worker()
  await worker.start()
  const failing = await app.enqueue(job, 'fails')
  await eventually('it runs', () => gate.waiting === 1)
  await pauseQueue(database, 'default')
  gate.open()
  const due = await app.enqueue(job, 'due', { delayMs: 100 })
  const lost = await app.enqueue(job, 'lost')
  await db.sql(
    `with taken as (delete from holdfast.ready where job_id = $1 returning job_id, seq)
    insert into holdfast.lease (worker_id, job_ids, seqs) select 4711, array[job_id], array[seq] from taken`,
    [lost.id],
  )
  await worker.stop()

  await app.worker().start()
  await eventually(
    'all three are ready',
    async () => (await db.sql('select from holdfast.ready')).length === 3,
  )
  const startedWhilePaused = events.of('attempt.started').length
  await resumeQueue(database, 'default')

  for (const { id } of [failing, due, lost]) {
    expect(await app.job(id).wait({ timeoutMs: 3000 })).toMatchObject({ state: 'completed' })
  }
  expect(startedWhilePaused).toBe(1)
})

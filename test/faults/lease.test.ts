import { expect, it } from 'vitest'
import { defineApp, defineJob, LeaseLostError } from '../../src/index.ts'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { startProgram } from '../support/processes.ts'
import { startProxy } from '../support/proxy.ts'
import { appOn, openApp } from './apps.ts'
import { aborted, anything, Gate } from './handlers.ts'

const program = 'test/faults/programs/worker.ts'

/** The application that the program runs, as a producer and to look at its jobs. */
function errandsOf() {
  return defineJob({
    name: 'errand',
    input: anything<{ readonly act: string; readonly ms?: number }>(),
    idempotent: true,
    handler: () => {},
  })
}

it('a job whose worker is SIGKILLed runs elsewhere within lease + 5 s, as attempt 2 with a history entry', async () => {
  const errand = errandsOf()
  await using opened = await openApp({ jobs: [errand] })
  const settings = JSON.stringify({ database: opened.db.url, leaseMs: 1000 })
  await using first = startProgram(program, { args: [settings] })
  await first.message('ready')
  const { id } = await opened.app.enqueue(errand, { act: 'stay' })
  await first.message('handling')
  const before = await opened.app.job(id).get()
  await using second = startProgram(program, { args: [settings] })
  await second.message('ready')

  const killedAtMs = performance.now()
  await first.kill()
  const handling = await second.message('handling')

  expect(performance.now() - killedAtMs).toBeLessThan(6000)
  expect(handling).toMatchObject({ job: id, attempt: 2 })
  expect(before).toMatchObject({ state: 'executing', attempts: 1 })
  expect(before?.workerId).toEqual((await first.message('ready'))['workerId'])
  expect(await opened.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
    state: 'completed',
    attempts: 2,
  })
  const history = await opened.db.sql(
    `select attempt::int, ended::text, error ->> 'code' as code from holdfast.attempt where job_id = $1`,
    [id],
  )
  expect(history).toEqual([{ attempt: 1, ended: 'worker-lost', code: 'WORKER_LOST' }])
})

it('a job that kills its worker each time starts maxAttempts times, then is discarded with an error for each', async () => {
  const errand = errandsOf()
  await using opened = await openApp({ jobs: [errand] })
  const { app, db } = opened
  const settings = JSON.stringify({ database: db.url, leaseMs: 1000, concurrency: 2 })
  const { id } = await app.enqueue(errand, { act: 'die' }, { maxAttempts: 3 })
  const [neighbour] = await app.enqueueMany([{ job: errand, input: { act: 'return' } }])
  const starts: unknown[] = []
  for (let life = 1; life <= 3; life += 1) {
    await using worker = startProgram(program, { args: [settings] })
    await eventually('it has killed this one too', async () => (await worker.exited).signal === 'SIGKILL', {
      deadlineMs: 45_000,
    })
    starts.push(...worker.messages.filter((m) => m.kind === 'handling' && m['act'] === 'die'))
    // The second crash in a row makes it wait: time moves by writing it.
    await eventually('its lease is taken back, or it has ended', async () => {
      await db.sql(`update holdfast.worker set heartbeat_at = heartbeat_at - interval '1 minute'`)
      await using rescuer = appOn(db, { jobs: [errandsOf()], queues: { default: {}, other: {} } })
      await rescuer.app.worker({ queues: ['other'] }).start()
      return await eventually(
        'taken back',
        async () => (await db.sql('select from holdfast.lease')).length === 0,
      )
    })
    await db.sql(`update holdfast.scheduled set run_at = clock_timestamp()`)
  }

  expect(starts).toHaveLength(3)
  expect(await app.job(id).get()).toMatchObject({
    state: 'discarded',
    attempts: 3,
    reason: 'worker lost on the last attempt',
  })
  const history = await db.sql(
    'select attempt::int, ended::text from holdfast.attempt where job_id = $1 order by token',
    [id],
  )
  expect(history).toEqual([
    { attempt: 1, ended: 'worker-lost' },
    { attempt: 2, ended: 'worker-lost' },
  ])
  expect((await app.job(neighbour?.id ?? '').get())?.state).toMatch(/completed|available/)
})

it('a job of one attempt whose worker was killed is discarded with a reason, and never runs again', async () => {
  const errand = errandsOf()
  await using opened = await openApp({ jobs: [errand] })
  const settings = JSON.stringify({ database: opened.db.url, leaseMs: 1000 })
  await using first = startProgram(program, { args: [settings] })
  const { id } = await opened.app.enqueue(errand, { act: 'sleep', ms: 60_000 }, { maxAttempts: 1 })
  await first.message('handling')
  await first.kill()
  await using second = startProgram(program, { args: [settings] })

  await second.message('jobs.rescued')

  expect(await opened.app.job(id).get()).toMatchObject({
    state: 'discarded',
    reason: 'worker lost on the last attempt',
  })
  expect(second.messages.filter((m) => m.kind === 'handling')).toEqual([])
})

it('a worker SIGSTOPped past its lease is refused when it wakes, its signal aborts, and attempt 2 stands', async () => {
  const errand = errandsOf()
  await using opened = await openApp({ jobs: [errand] })
  const { app, db } = opened
  const settings = JSON.stringify({ database: db.url, leaseMs: 1000 })
  await using stopped = startProgram(program, { args: [settings] })
  await stopped.message('ready')
  const { id } = await app.enqueue(errand, { act: 'ignore', ms: 1500 })
  await stopped.message('handling')
  stopped.pause()
  await using other = startProgram(program, { args: [settings] })
  await other.message('handling')
  expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ result: { attempt: 2 } })

  stopped.resume()

  await stopped.message('lease.lost')
  expect(await stopped.message('aborted')).toMatchObject({ job: id, attempt: 1, reason: 'LeaseLostError' })
  expect(await stopped.message('write.refused')).toMatchObject({ jobId: id, attempt: 1, write: 'completed' })
  expect(await app.job(id).get()).toMatchObject({ state: 'completed', attempts: 2, result: { attempt: 2 } })
  expect(stopped.messages.filter((m) => m.kind === 'job.completed')).toEqual([])
  // It goes on in a new life, and is told of new jobs.
  await other.kill()
  const next = await app.enqueue(errand, { act: 'return' })
  expect(await app.job(next.id).wait({ timeoutMs: 3000 })).toMatchObject({ state: 'completed', attempts: 1 })
})

it('a worker that lost its lease is woken by enqueues in its new life, well before a poll', async () => {
  const done: string[] = []
  const job = defineJob({
    name: 'note',
    input: anything<string>(),
    idempotent: true,
    handler: (_, input) => void done.push(input),
  })
  await using opened = await openApp({ jobs: [job], leaseMs: 1000, maxPollMs: 60_000 })
  const { app, db, events } = opened
  await app.worker().start()
  const before = await eventually(
    'it waits',
    async () => (await db.sql('select worker_id from holdfast.waiter'))[0],
  )
  await db.sql('with dead as (delete from holdfast.worker) delete from holdfast.waiter')
  await events.first('lease.lost')
  await eventually('its new life waits', async () => {
    const [waiter] = await db.sql('select worker_id from holdfast.waiter')
    return waiter !== undefined && waiter['worker_id'] !== before['worker_id']
  })

  const { id } = await app.enqueue(job, 'a')

  expect(await app.job(id).wait({ timeoutMs: 2000 })).toMatchObject({ state: 'completed' })
})

it('a handler running five leases runs once: heartbeats keep it', async () => {
  const errand = errandsOf()
  await using opened = await openApp({ jobs: [errand] })
  const settings = JSON.stringify({ database: opened.db.url, leaseMs: 1000 })
  await using first = startProgram(program, { args: [settings] })
  await first.message('ready')
  const { id } = await opened.app.enqueue(errand, { act: 'sleep', ms: 5000 })
  await first.message('handling')
  await using second = startProgram(program, { args: [settings] })
  await second.message('ready')

  expect(await opened.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
    state: 'completed',
    attempts: 1,
  })

  expect(second.messages.filter((m) => m.kind === 'handling' || m.kind === 'jobs.rescued')).toEqual([])
  expect(first.messages.filter((m) => m.kind === 'job.completed')).toHaveLength(1)
})

it('an event loop blocked for three leases loses nothing: the thread renews, nobody else runs it, and it is told', async () => {
  const errand = errandsOf()
  await using opened = await openApp({ jobs: [errand] })
  const settings = JSON.stringify({ database: opened.db.url, leaseMs: 1000 })
  await using first = startProgram(program, { args: [settings] })
  await first.message('ready')
  const ids = await opened.app.enqueueMany([
    { job: errand, input: { act: 'block', ms: 3500 } },
    { job: errand, input: { act: 'sleep', ms: 100 } },
  ])
  await first.message('handling', { where: (m) => m['act'] === 'block' })
  await using second = startProgram(program, { args: [settings] })
  await second.message('ready')

  for (const { id } of ids) {
    expect(await opened.app.job(id).wait({ timeoutMs: 15_000 })).toMatchObject({
      state: 'completed',
      attempts: 1,
    })
  }

  const blocked = await first.message('loop.blocked')
  expect(blocked['blockedMs']).toBeGreaterThan(1000)
  expect(second.messages.filter((m) => m.kind === 'handling' || m.kind === 'jobs.rescued')).toEqual([])
  expect(first.messages.filter((m) => m.kind === 'write.refused' || m.kind === 'lease.lost')).toEqual([])
})

it('a loop blocked past timeout and grace ends its process with a message, where asked to, and its jobs go elsewhere', async () => {
  const errand = errandsOf()
  await using opened = await openApp({ jobs: [errand] })
  const settings = { database: opened.db.url, leaseMs: 1000, timeoutMs: 800, abortGraceMs: 200 }
  await using stuck = startProgram(program, {
    args: [JSON.stringify({ ...settings, endProcessWhenStuck: true })],
  })
  await stuck.message('ready')
  const { id } = await opened.app.enqueue(errand, { act: 'block', ms: 30_000 }, { maxAttempts: 2 })
  await stuck.message('handling')

  const exit = await stuck.exited

  expect(exit.signal).toBe('SIGKILL')
  expect(stuck.output).toContain('blocked the event loop past its timeout and grace')
  await using rescuer = startProgram(program, { args: [JSON.stringify({ ...settings, timeoutMs: 60_000 })] })
  // Its event of the rescue may come too late to be told: the job blocks this loop as well.
  expect(await rescuer.message('handling')).toMatchObject({ job: id, attempt: 2 })
  expect(
    await opened.db.sql('select attempt::int, ended::text from holdfast.attempt where job_id = $1', [id]),
  ).toEqual([{ attempt: 1, ended: 'worker-lost' }])
})

it('a loop blocked past timeout and grace gives its leases up even when the process may live', async () => {
  const errand = errandsOf()
  await using opened = await openApp({ jobs: [errand] })
  const settings = { database: opened.db.url, leaseMs: 1000 }
  await using stuck = startProgram(program, {
    args: [JSON.stringify({ ...settings, timeoutMs: 500, abortGraceMs: 100 })],
  })
  await stuck.message('ready')
  // Longer than the other takes to start: its own worker would go on with the job else.
  const { id } = await opened.app.enqueue(errand, { act: 'block', ms: 10_000 })
  await stuck.message('handling')
  await using other = startProgram(program, { args: [JSON.stringify(settings)] })

  expect(await other.message('handling')).toMatchObject({ job: id, attempt: 2 })

  await stuck.message('lease.lost')
  expect(await stuck.message('write.refused')).toMatchObject({ jobId: id, attempt: 1 })
  expect(await opened.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
    state: 'completed',
    attempts: 2,
  })
})

it('heartbeats that fail for less than a lease cost nothing, and the process survives', async () => {
  const gate = new Gate()
  const job = defineJob({
    name: 'held',
    input: anything<null>(),
    idempotent: true,
    handler: async () => await gate.wait(),
  })
  await using db = await createDatabase()
  await using proxy = await startProxy(db.url)
  await using opened = appOn(db, { jobs: [job], database: proxy.url(), leaseMs: 4000 })
  const { app, events } = opened
  await app.worker().start()
  const { id } = await app.enqueue(job, null)
  await eventually('it runs', () => gate.waiting === 1)

  proxy.refuse()
  proxy.cut()
  await events.first('worker.error', (e) => e.during === 'heartbeat')
  proxy.pass()
  const [row] = await db.sql<{ beat: string }>('select heartbeat_at::text as beat from holdfast.worker')
  await eventually(
    'it renews again',
    async () =>
      (await db.sql('select from holdfast.worker where heartbeat_at > $1::timestamptz', [row?.beat])).length,
  )
  gate.open()

  expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed', attempts: 1 })
  expect(events.of('lease.lost')).toEqual([])
})

it('a database out of reach for a whole lease aborts the handlers in time, without an answer', async () => {
  const reasons: unknown[] = []
  const refusals: unknown[] = []
  const job = defineJob({
    name: 'held',
    input: anything<null>(),
    effects: ['enqueue:held'],
    idempotent: true,
    async handler(ctx) {
      reasons.push(await aborted(ctx.signal))
      await ctx.enqueue(job, null).catch((error: unknown) => refusals.push(error))
    },
  })
  await using db = await createDatabase()
  await using proxy = await startProxy(db.url)
  await using opened = appOn(db, { jobs: [job], database: proxy.url(), leaseMs: 1500 })
  const { app, events } = opened
  await app.worker().start()
  const { id } = await app.enqueue(job, null)
  await events.first('attempt.started')

  const frozenAtMs = performance.now()
  proxy.freeze()
  await eventually('the handler is told', () => refusals.length === 1)

  // One lease from the last renewal that was answered, and the turn of a timer.
  expect(performance.now() - frozenAtMs).toBeLessThan(1500 + 700)
  expect(reasons[0]).toBeInstanceOf(LeaseLostError)
  expect(refusals[0]).toBe(reasons[0])
  proxy.pass()
  expect(events.of('job.completed').filter((e) => e.jobId === id && e.attempt === 1)).toEqual([])
})

it('a lease below one second is refused before anything starts', async () => {
  expect(() => defineApp({ name: 'x', database: 'postgres://localhost/x', jobs: [], leaseMs: 999 })).toThrow(
    /leaseMs/,
  )
})

it('workers whose clocks are five minutes apart neither rescue a live lease nor start a job early', async () => {
  const errand = errandsOf()
  await using opened = await openApp({ jobs: [errand] })
  const { app, db } = opened
  const settings = { database: db.url, leaseMs: 2000, concurrency: 1, maxPollMs: 300 }
  await using ahead = startProgram(program, { args: [JSON.stringify({ ...settings, clockOffMs: 300_000 })] })
  await using behind = startProgram(program, {
    args: [JSON.stringify({ ...settings, clockOffMs: -300_000 })],
  })
  await ahead.message('ready')
  await behind.message('ready')
  const running = await app.enqueueMany(
    [1, 2].map(() => ({ job: errand, input: { act: 'sleep', ms: 4000 } })),
  )
  const due = await app.enqueue(errand, { act: 'return' }, { delayMs: 1500 })

  for (const { id } of [...running, due]) {
    expect(await app.job(id).wait({ timeoutMs: 15_000 })).toMatchObject({ state: 'completed', attempts: 1 })
  }

  const [row] = await db.sql<{ early: boolean }>(
    `select o.finished_at < j.run_at as early from holdfast.job j join holdfast.outcome o on o.job_id = j.id where j.id = $1`,
    [due.id],
  )
  expect(row).toEqual({ early: false })
  expect([...ahead.messages, ...behind.messages].filter((m) => m.kind === 'jobs.rescued')).toEqual([])
})

it('a lease that arrives after the end of its worker is taken back, though no worker is stale', async () => {
  const job = defineJob({ name: 'plain', input: anything<null>(), idempotent: true, handler: () => 'ran' })
  await using opened = await openApp({ jobs: [job], maxPollMs: 300 })
  const { app, db } = opened
  const { id } = await app.enqueue(job, null)
  // As a claim that was still under way when its worker was declared dead, or removed.
  await db.sql(`with taken as (delete from holdfast.ready returning job_id, seq)
    insert into holdfast.lease (worker_id, job_ids, seqs) select 4711, array[job_id], array[seq] from taken`)

  await app.worker().start()

  expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed', attempts: 2 })
})

it('the row of one running job is deleted: the other four complete, and the worker goes on', async () => {
  const gate = new Gate()
  const job = defineJob({
    name: 'held',
    input: anything<null>(),
    idempotent: true,
    handler: async () => await gate.wait(),
  })
  await using opened = await openApp({ jobs: [job] })
  const { app, db, events } = opened
  await app.worker().start()
  const ids = await app.enqueueMany([1, 2, 3, 4, 5].map(() => ({ job, input: null })))
  await eventually('all run', () => gate.waiting === 5)
  await db.sql('delete from holdfast.job where id = $1', [ids[2]?.id])

  gate.open()

  const others = ids.filter((_, index) => index !== 2)
  for (const { id } of others)
    expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
  const next = await app.enqueue(job, null)
  expect(await app.job(next.id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
  await eventually('no lease is left', async () => (await db.sql('select from holdfast.lease')).length === 0)
  expect(await app.job(ids[2]?.id ?? '').get()).toBeUndefined()
  expect(events.of('worker.error')).toEqual([])
})

it('a completion whose answer was lost is recorded once, and told as completed, not as refused', async () => {
  const job = defineJob({ name: 'plain', input: anything<null>(), idempotent: true, handler: () => 'ran' })
  await using db = await createDatabase()
  await using proxy = await startProxy(db.url)
  await using opened = appOn(db, { jobs: [job], database: proxy.url() })
  await using producer = appOn(db, { jobs: [job] })
  await opened.app.worker().start()
  const hit = proxy.dropAnswer(/settle_(completed|and_claim)/)
  const { id } = await producer.app.enqueue(job, null)
  await hit

  expect(await producer.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
    state: 'completed',
    attempts: 1,
  })
  await opened.events.first('job.completed')
  expect(opened.events.of('write.refused')).toEqual([])
  expect(opened.events.of('attempt.started')).toHaveLength(1)
  await eventually('no lease is left', async () => (await db.sql('select from holdfast.lease')).length === 0)
})

it('in bulk, where completions go beside the claims, a lost answer loses nothing and tells nothing twice', async () => {
  const jobs = 8000
  let runs = 0
  const job = defineJob({
    name: 'plain',
    input: anything<number>(),
    idempotent: true,
    handler: () => void (runs += 1),
  })
  await using db = await createDatabase()
  await using proxy = await startProxy(db.url)
  await using opened = appOn(db, { jobs: [job], database: proxy.url() })
  await using producer = appOn(db, { jobs: [job] })
  let told = 0
  opened.app.events.on('job.completed', () => void (told += 1))
  await producer.app.enqueueMany(Array.from({ length: jobs }, (_, i) => ({ job, input: i })))
  const hit = proxy.dropAnswer(/settle_completed/)
  await opened.app.worker().start()
  await hit
  await eventually('all have ended', async () => {
    const [row] = await db.sql<{ ended: number }>('select count(*)::int as ended from holdfast.outcome')
    return row?.ended === jobs && told === jobs
  })
  await eventually('no lease is left', async () => (await db.sql('select from holdfast.lease')).length === 0)

  expect(runs).toBe(jobs)
  expect(opened.events.of('write.refused')).toEqual([])
  expect(opened.events.of('worker.error').length).toBeGreaterThan(0)
})

it('a store that keeps the highest fencing token refuses the write of a worker that was passed over', async () => {
  const errand = errandsOf()
  await using opened = await openApp({ jobs: [errand] })
  const settings = JSON.stringify({ database: opened.db.url, leaseMs: 1000 })
  await using first = startProgram(program, { args: [settings] })
  await first.message('ready')
  await opened.app.enqueue(errand, { act: 'sleep', ms: 30_000 })
  const early = await first.message('handling')
  await first.kill()
  await using second = startProgram(program, { args: [settings] })

  const late = await second.message('handling')

  expect(BigInt(String(late['token']))).toBeGreaterThan(BigInt(String(early['token'])))
})

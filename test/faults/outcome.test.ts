import { expect, it } from 'vitest'
import { retryJob } from '../../src/admin/retry-job.ts'
import { type App, defineApp, defineJob, PermanentError } from '../../src/index.ts'
import { eventually } from '../support/eventually.ts'
import { openApp, openEmbeddedApp } from './apps.ts'
import { anything } from './handlers.ts'

const base = { input: anything<unknown>(), idempotent: true } as const

async function ends(app: App, id: string) {
  return await app.job(id).wait({ timeoutMs: 20_000 })
}

for (const [kind, open] of [
  ['PostgreSQL', openApp],
  ['PGlite', openEmbeddedApp],
] as const) {
  it(`a failing handler is retried within the declared bounds, with time, attempt, message and code kept (${kind})`, async () => {
    const job = defineJob({
      ...base,
      name: 'fails',
      maxAttempts: 3,
      retry: { type: 'exponential', baseMs: 200, factor: 2, jitter: 'none' },
      handler(ctx) {
        throw Object.assign(new Error(`no ${ctx.job.attempt}`), { code: 'E_NO' })
      },
    })
    await using opened = await open({ jobs: [job] })
    const { app, events } = opened
    await app.worker().start()
    const { id } = await app.enqueue(job, null)

    expect(await ends(app, id)).toMatchObject({ state: 'discarded', attempts: 3, reason: 'no attempts left' })

    expect(events.of('attempt.failed').map((e) => [e.attempt, e.retryInMs])).toEqual([
      [1, 200],
      [2, 400],
    ])
    const starts = events.all.filter((e) => e.name === 'attempt.started').map((e) => e.atMs)
    expect((starts[1] ?? 0) - (starts[0] ?? 0)).toBeGreaterThanOrEqual(199)
    expect((starts[2] ?? 0) - (starts[1] ?? 0)).toBeGreaterThanOrEqual(399)
    expect(await app.job(id).get()).toMatchObject({
      state: 'discarded',
      error: { message: 'no 3', code: 'E_NO' },
    })
    expect(events.of('job.discarded')).toMatchObject([{ jobId: id, attempt: 3, reason: 'no attempts left' }])
  })

  it(`a permanent error, a retry at a time, and "not yet" do what they say (${kind})`, async () => {
    const snoozes: number[] = []
    const permanent = defineJob({
      ...base,
      name: 'permanent',
      handler: () => {
        throw new PermanentError('never')
      },
    })
    const later = defineJob({
      ...base,
      name: 'later',
      maxAttempts: 3,
      handler: (ctx) => (ctx.job.attempt === 1 ? ctx.retry({ inMs: 300, reason: 'retry-after' }) : 'ok'),
    })
    const notYet = defineJob({
      ...base,
      name: 'notYet',
      maxAttempts: 1,
      handler(ctx) {
        snoozes.push(ctx.job.attempt)
        return snoozes.length < 4 ? ctx.snooze({ inMs: 20 }) : 'ok'
      },
    })
    const away = defineJob({ ...base, name: 'away', handler: (ctx) => ctx.discard('not ours') })
    const off = defineJob({ ...base, name: 'off', handler: (ctx) => ctx.cancel('not needed') })
    await using opened = await open({ jobs: [permanent, later, notYet, away, off] })
    const { app, events } = opened
    await app.worker().start()
    const ids = await app.enqueueMany(
      [permanent, later, notYet, away, off].map((job) => ({ job, input: null })),
    )

    const found = []
    for (const { id } of ids) found.push(await ends(app, id))

    expect(found).toMatchObject([
      { state: 'discarded', attempts: 1, reason: 'permanent error' },
      { state: 'completed', attempts: 2 },
      { state: 'completed', attempts: 1 },
      { state: 'discarded', attempts: 1, reason: 'not ours' },
      { state: 'cancelled', reason: 'not needed' },
    ])
    expect(snoozes).toEqual([1, 1, 1, 1])
    expect(events.of('attempt.failed')).toMatchObject([{ attempt: 1, retryInMs: 300 }])
    expect(events.of('job.snoozed')).toHaveLength(3)
  })

  it(`what is thrown, of whatever kind, becomes one failed attempt with a readable, bounded, redacted entry (${kind})`, async () => {
    const self: { cause?: unknown } = new Error('cycle')
    self.cause = self
    const thrown: readonly (readonly [unknown, RegExp])[] = [
      ['boom', /boom/],
      [{ code: 7 }, /7/],
      [self, /cycle/],
      [new Error(''), /Error/],
      [undefined, /./],
      [null, /./],
      [Symbol('s'), /./],
      [new Error('x'.repeat(5_000_000)), /xxx/],
      [new Error('connect to postgres://u:S3cret@host/db failed'), /connect to/],
      [
        new Proxy(
          {},
          {
            get() {
              throw new Error('trap')
            },
          },
        ),
        /./,
      ],
    ]
    const job = defineJob({
      ...base,
      name: 'throws',
      maxAttempts: 1,
      handler(_, index) {
        throw thrown[index as number]?.[0]
      },
    })
    await using opened = await open({ jobs: [job] })
    const { app } = opened
    await app.worker().start()
    const ids = await app.enqueueMany(thrown.map((_, index) => ({ job, input: index })))

    for (const [index, { id }] of ids.entries()) {
      expect(await ends(app, id)).toMatchObject({ state: 'discarded', attempts: 1 })
      const text = JSON.stringify((await app.job(id).get())?.error)
      expect(text).toMatch(thrown[index]?.[1] ?? /$/)
      expect(text.length).toBeLessThan(17_000)
      expect(text).not.toContain('S3cret')
    }
  })
}

it('a discarded job is never claimed again and still there after weeks', async () => {
  const job = defineJob({
    ...base,
    name: 'fails',
    maxAttempts: 1,
    handler: () => Promise.reject(new Error('no')),
  })
  await using opened = await openApp({ jobs: [job] })
  const { app, db, events } = opened
  await app.worker().start()
  const { id } = await app.enqueue(job, null)
  await ends(app, id)
  await db.sql(`update holdfast.outcome set finished_at = finished_at - interval '21 days'`)

  await app.worker().start()
  const other = await app.enqueue(job, null)
  await ends(app, other.id)

  expect(await app.job(id).get()).toMatchObject({ state: 'discarded', attempts: 1 })
  expect(events.of('attempt.started').filter((e) => e.jobId === id)).toHaveLength(1)
})

it('of more failures than the history holds the newest are kept, and the count of attempts stays true', async () => {
  const job = defineJob({
    ...base,
    name: 'fails',
    maxAttempts: 40,
    retry: { type: 'fixed', delayMs: 0 },
    handler(ctx) {
      throw new Error(`no ${ctx.job.attempt}`)
    },
  })
  await using opened = await openApp({ jobs: [job] })
  const { app, db } = opened
  await app.worker().start()
  const { id } = await app.enqueue(job, null)

  expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'discarded', attempts: 40 })
  const kept = (
    await db.sql<{ attempt: number }>('select attempt::int from holdfast.attempt order by token')
  ).map((row) => row.attempt)
  expect(kept.length).toBeLessThanOrEqual(20)
  expect(kept.length).toBeGreaterThanOrEqual(19)
  expect(kept.at(-1)).toBe(39)
  expect(kept).toEqual(Array.from({ length: kept.length }, (_, i) => 40 - kept.length + i))
})

it('backoff at any attempt number stays within its cap, through the database too', async () => {
  const job = defineJob({
    ...base,
    name: 'fails',
    maxAttempts: 1000,
    retry: { type: 'exponential', jitter: 'none' },
    handler: () => Promise.reject(new Error('no')),
  })
  await using opened = await openApp({ jobs: [job] })
  const { app, db, events } = opened
  const attempts = [1, 2, 3, 10, 31, 32, 63, 64, 999]
  const ids = await app.enqueueMany(attempts.map(() => ({ job, input: null })))
  for (const [index, { id }] of ids.entries()) {
    await db.sql('update holdfast.ready set attempts = $1::int - 1 where job_id = $2', [attempts[index], id])
  }
  await app.worker().start()
  await eventually('each has failed once', () => events.of('attempt.failed').length === attempts.length)

  const waits = await db.sql<{ s: number }>(
    `select round(extract(epoch from run_at - a.ended_at))::int as s from holdfast.scheduled s join holdfast.attempt a using (job_id) order by a.attempt`,
  )
  expect(waits.map((row) => row.s)).toEqual([1, 2, 4, 512, 3600, 3600, 3600, 3600, 3600])
})

it('the word idempotent protects nothing: a job delivered twice runs twice, with the same id and attempts 1 and 2', async () => {
  const seen: unknown[] = []
  const job = defineJob({
    ...base,
    name: 'twice',
    retry: { type: 'fixed', delayMs: 0 },
    handler(ctx) {
      seen.push([ctx.job.id, ctx.job.attempt])
      if (ctx.job.attempt === 1) throw new Error('after the effect')
    },
  })
  await using opened = await openApp({ jobs: [job] })
  const { app } = opened
  await app.worker().start()
  const { id } = await app.enqueue(job, null)
  await ends(app, id)

  expect(seen).toEqual([
    [id, 1],
    [id, 2],
  ])
})

it('a job that does not say "idempotent: true" is refused when it is defined, and when it is composed', async () => {
  const without = { ...base, name: 'x', handler: () => {}, idempotent: undefined } as never
  expect(() => defineJob(without)).toThrow(/idempotent/)
  const good = defineJob({ ...base, name: 'x', handler: () => {} })
  const forged = { ...good, idempotent: false } as never
  expect(() => defineApp({ name: 'x', database: 'postgres://localhost/x', jobs: [forged] })).toThrow(
    /idempotent/,
  )
})

it('a keyed enqueue whose rival ends, or rolls back, between insert and lookup gets a job, never an error', async () => {
  const job = defineJob({ ...base, name: 'keyed', handler: () => {} })
  await using opened = await openApp({ jobs: [job] })
  const { app, db } = opened
  await app.worker().start()
  const rival = await db.connect()
  await rival.query('begin')
  const gone = await app.enqueue(job, 1, { tx: rival, uniqueKey: 'k' })
  const waiting = app.enqueue(job, 2, { uniqueKey: 'k' })
  await eventually(
    'it waits for the rival',
    async () =>
      (
        await db.sql(
          `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
        )
      ).length,
  )
  await rival.query('rollback')
  const made = await waiting
  // And against a rival that completes at the same moment, many times.
  const answers = []
  for (let round = 0; round < 60; round += 1) {
    answers.push(
      ...(await Promise.all([1, 2, 3].map(async () => await app.enqueue(job, round, { uniqueKey: 'r' })))),
    )
  }

  expect(made.status).toBe('created')
  expect(made.id).not.toBe(gone.id)
  expect(answers).toHaveLength(180)
  for (const { id } of answers) expect(await app.job(id).get()).toMatchObject({ id })
})

it("an operator's retry keeps the history and gives at least one more attempt", async () => {
  let works = false
  const job = defineJob({
    ...base,
    name: 'mended',
    maxAttempts: 2,
    retry: { type: 'fixed', delayMs: 0 },
    handler(ctx) {
      if (!works) throw new Error(`no ${ctx.job.attempt}`)
      return ctx.job.attempt
    },
  })
  await using opened = await openApp({ jobs: [job] })
  const { app, db } = opened
  await app.worker().start()
  const { id } = await app.enqueue(job, null)
  await ends(app, id)
  works = true

  expect(await retryJob(app.internals, id)).toMatchObject({ status: 'ready' })

  expect(await ends(app, id)).toMatchObject({ state: 'completed', result: 3, attempts: 3 })
  const kept = await db.sql(
    `select error ->> 'message' as message from holdfast.attempt where job_id = $1 order by token`,
    [id],
  )
  expect(kept).toEqual([{ message: 'no 1' }, { message: 'no 2' }])
  expect(await retryJob(app.internals, id)).toMatchObject({ status: 'not-retryable', state: 'completed' })
})

it('a retry of a job whose unique key a live job holds is a conflict that names that job, and changes nothing', async () => {
  const job = defineJob({
    ...base,
    name: 'keyed',
    maxAttempts: 1,
    handler: () => Promise.reject(new Error('no')),
  })
  await using opened = await openApp({ jobs: [job] })
  const { app } = opened
  const worker = app.worker()
  await worker.start()
  const { id } = await app.enqueue(job, null, { uniqueKey: 'k' })
  await ends(app, id)
  await worker.stop()
  const live = await app.enqueue(job, null, { uniqueKey: 'k' })

  await expect(retryJob(app.internals, id)).rejects.toMatchObject({
    code: 'UNIQUE_CONFLICT',
    conflictingJobId: BigInt(live.id),
  })

  expect(live.status).toBe('created')
  expect(await app.job(id).get()).toMatchObject({ state: 'discarded', attempts: 1 })
  expect(await app.job(live.id).get()).toMatchObject({ state: 'available' })
})

import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, it } from 'vitest'
import { startTimer } from '../../src/base/sleep.ts'
import { defineJob, JobTimeoutError } from '../../src/index.ts'
import { eventually } from '../support/eventually.ts'
import { openApp, openEmbeddedApp } from './apps.ts'
import { aborted, anything, Gate } from './handlers.ts'

const base = { input: anything<null>(), idempotent: true } as const

for (const [kind, open] of [
  ['PostgreSQL', openApp],
  ['PGlite', openEmbeddedApp],
] as const) {
  it(`a timeout aborts the signal with its reason, and a co-operating handler ends as a failed attempt (${kind})`, async () => {
    const reasons: unknown[] = []
    const job = defineJob({
      ...base,
      name: 'slow',
      timeoutMs: 200,
      maxAttempts: 2,
      retry: { type: 'fixed', delayMs: 0 },
      async handler(ctx) {
        reasons.push(await aborted(ctx.signal))
        ctx.signal.throwIfAborted()
      },
    })
    await using opened = await open({ jobs: [job] })
    const { app, events } = opened
    await app.worker().start()

    const { id } = await app.enqueue(job, null)

    expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
      state: 'discarded',
      attempts: 2,
      reason: 'no attempts left',
    })
    expect(events.of('attempt.failed')).toMatchObject([{ jobId: id, attempt: 1, timedOut: true }])
    expect(events.of('job.discarded')).toMatchObject([{ jobId: id, attempt: 2 }])
    expect(reasons).toHaveLength(2)
    expect(reasons[0]).toBeInstanceOf(JobTimeoutError)
  })
}

it('a handler that succeeds after its timeout but within the grace has completed, late, and is not repeated', async () => {
  const job = defineJob({
    ...base,
    name: 'late',
    timeoutMs: 100,
    abortGraceMs: 5000,
    async handler(ctx) {
      await aborted(ctx.signal)
      await new Promise((resolve) => setTimeout(resolve, 100))
      return 'did it'
    },
  })
  await using opened = await openApp({ jobs: [job] })
  const { app, db, events } = opened
  await app.worker().start()

  const { id } = await app.enqueue(job, null)

  expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
    state: 'completed',
    result: 'did it',
    attempts: 1,
  })
  expect(await db.sql('select late from holdfast.outcome where job_id = $1', [id])).toEqual([{ late: true }])
  expect(events.of('job.completed')).toMatchObject([{ jobId: id, late: true }])
  expect(events.of('attempt.started')).toHaveLength(1)
})

it('a handler that ignores its timeout past the grace fails one attempt; its late success counts for nothing', async () => {
  const ended: number[] = []
  const alive = { now: 0, most: 0 }
  const job = defineJob({
    ...base,
    name: 'deaf',
    timeoutMs: 200,
    abortGraceMs: 100,
    maxAttempts: 2,
    retry: { type: 'fixed', delayMs: 0 },
    async handler(ctx) {
      alive.most = Math.max(alive.most, (alive.now += 1))
      if (ctx.job.attempt === 1) await new Promise((resolve) => setTimeout(resolve, 1000))
      alive.now -= 1
      ended.push(ctx.job.attempt)
      return ctx.job.attempt
    },
  })
  await using opened = await openApp({ jobs: [job], queues: { default: { concurrency: 1 } } })
  const { app, events } = opened
  await app.worker().start()
  const { id } = await app.enqueue(job, null)

  const end = await app.job(id).wait({ timeoutMs: 20_000 })
  await eventually('the first handler has returned too', () => ended.includes(1))

  expect(end).toMatchObject({ state: 'completed', result: 2, attempts: 2 })
  expect(events.of('attempt.failed')).toMatchObject([{ jobId: id, attempt: 1, timedOut: true }])
  expect(events.of('handler.abandoned')).toMatchObject([{ jobId: id, attempt: 1 }])
  expect(events.of('job.completed')).toHaveLength(1)
  // Documented: an abandoned handler frees its slot, so that it may still be there beside the next.
  expect(alive.most).toBe(2)
  expect(await app.job(id).get()).toMatchObject({ state: 'completed', result: 2 })
})

it('a handler that never returns after the abort frees its slot and its lease at the hard limit', async () => {
  const job = defineJob({
    ...base,
    name: 'never',
    timeoutMs: 100,
    abortGraceMs: 100,
    maxAttempts: 1,
    handler: async () => await new Promise(() => {}),
  })
  const quick = defineJob({ ...base, name: 'quick', handler: () => 'ran' })
  await using opened = await openApp({ jobs: [job, quick], queues: { default: { concurrency: 1 } } })
  const { app, db } = opened
  const worker = app.worker()
  await worker.start()
  const stuck = await app.enqueue(job, null)
  const next = await app.enqueue(quick, null)

  expect(await app.job(next.id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
  expect(await app.job(stuck.id).wait({ timeoutMs: 20_000 })).toMatchObject({
    state: 'discarded',
    attempts: 1,
  })
  expect(worker.running).toBe(0)
  expect(await db.sql('select from holdfast.lease')).toEqual([])
})

it('the signal passed to an API that takes one aborts the call', async () => {
  const calls: string[] = []
  const server = createServer((request) => {
    calls.push('came')
    request.once('close', () => calls.push('closed'))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
  const job = defineJob({
    ...base,
    name: 'fetch',
    timeoutMs: 200,
    maxAttempts: 1,
    handler: async (ctx) => await fetch(url, { signal: ctx.signal }).then((answer) => answer.status),
  })
  await using opened = await openApp({ jobs: [job] })
  await opened.app.worker().start()
  const { id } = await opened.app.enqueue(job, null)

  expect(await opened.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'discarded' })
  await eventually('the provider saw the call end', () => calls.join() === 'came,closed')
  server.closeAllConnections()
  server.close()
})

it('a timeout of 24 days and a grace do not fire at once', async () => {
  const gate = new Gate()
  const reasons: unknown[] = []
  const warnings: string[] = []
  const onWarning = (warning: Error) => void warnings.push(warning.name)
  process.on('warning', onWarning)
  const job = defineJob({
    ...base,
    name: 'long',
    timeoutMs: 24 * 86_400_000,
    async handler(ctx) {
      ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason))
      await gate.wait()
    },
  })
  await using opened = await openApp({ jobs: [job] })
  await opened.app.worker().start()
  const { id } = await opened.app.enqueue(job, null)
  await eventually('it runs', () => gate.waiting === 1)
  // A turn of the loop after any timer that had overflowed to 1 ms.
  await new Promise((resolve) => setTimeout(resolve, 50))
  gate.open()

  expect(await opened.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
  expect(reasons).toEqual([])
  expect(warnings).toEqual([])
  process.off('warning', onWarning)
})

it('a wait of 2^31 ms, or of a hundred years, is kept in parts and does not fire', async () => {
  let fired = 0
  const stops = [2 ** 31 - 1, 2 ** 31, 36_525 * 86_400_000].map((ms) =>
    startTimer(ms, () => void (fired += 1)),
  )
  await new Promise((resolve) => setTimeout(resolve, 50))
  for (const stop of stops) stop()

  expect(fired).toBe(0)
})

it('a job due in 30 days neither starts nor makes the worker look more often', async () => {
  const job = defineJob({ ...base, name: 'far', handler: () => {} })
  await using opened = await openApp({ jobs: [job] })
  const { app, db, events } = opened
  await app.worker().start()
  await app.enqueue(job, null, { delayMs: 2_592_000_000 })
  const statements = async () =>
    Number(
      (
        await db.sql(
          `select sum(xact_commit)::int as n from pg_stat_database where datname = current_database()`,
        )
      )[0]?.['n'],
    )
  await new Promise((resolve) => setTimeout(resolve, 1500))
  const before = await statements()
  await new Promise((resolve) => setTimeout(resolve, 2000))

  // Of these two are the test's own.
  expect((await statements()) - before).toBeLessThan(14)
  expect(events.of('attempt.started')).toEqual([])
})

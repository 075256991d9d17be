import { expect, it } from 'vitest'
import { defineJob, JobCancelledError } from '../../src/index.ts'
import { createDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { startProgram } from '../support/processes.ts'
import { startProxy } from '../support/proxy.ts'
import { appOn, openApp, openEmbeddedApp } from './apps.ts'
import { aborted, anything, Gate } from './handlers.ts'

const base = { input: anything<null>(), idempotent: true } as const

for (const [kind, open] of [
  ['PostgreSQL', openApp],
  ['PGlite', openEmbeddedApp],
] as const) {
  for (const how of ['resolves', 'throws'] as const) {
    it(`a job cancelled while it runs ends cancelled and is never retried, though its handler ${how} (${kind})`, async () => {
      const gate = new Gate()
      const job = defineJob({
        ...base,
        name: 'held',
        maxAttempts: 5,
        retry: { type: 'fixed', delayMs: 0 },
        async handler() {
          await gate.wait()
          if (how === 'throws') throw new Error('no')
          return 'done'
        },
      })
      await using opened = await open({ jobs: [job] })
      const { app, events } = opened
      await app.worker().start()
      const { id } = await app.enqueue(job, null)
      await eventually('it runs', () => gate.waiting === 1)

      const first = await app.job(id).cancel({ reason: 'not needed' })
      const second = await app.job(id).cancel()
      gate.open()

      expect([first.status, second.status]).toEqual(['cancelling', 'cancelling'])
      expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
        state: 'cancelled',
        result: null,
        attempts: 1,
      })
      await events.first('job.cancelled')
      expect(await app.job(id).cancel()).toEqual({ status: 'finished', state: 'cancelled' })
      expect(events.of('attempt.started')).toHaveLength(1)
      expect(events.of('job.completed')).toEqual([])
    })
  }

  it(`a waiting or scheduled job that was cancelled never starts; a finished one stays as it is (${kind})`, async () => {
    const job = defineJob({ ...base, name: 'plain', handler: () => 'ran' })
    await using opened = await open({ jobs: [job] })
    const { app, events } = opened
    const waiting = await app.enqueue(job, null)
    const scheduled = await app.enqueue(job, null, { delayMs: 100 })
    const unknown = await app.job('999999').cancel()

    const answers = [
      await app.job(waiting.id).cancel({ reason: 'why' }),
      await app.job(scheduled.id).cancel(),
    ]
    await app.worker().start()
    const other = await app.enqueue(job, null, { delayMs: 200 })
    await app.job(other.id).wait({ timeoutMs: 20_000 })

    expect(answers).toEqual([{ status: 'cancelled' }, { status: 'cancelled' }])
    expect(unknown).toEqual({ status: 'not-found' })
    expect(events.of('attempt.started').map((e) => e.jobId)).toEqual([other.id])
    expect(await app.job(waiting.id).get()).toMatchObject({ state: 'cancelled', reason: 'why', attempts: 0 })
    expect(await app.job(other.id).cancel()).toEqual({ status: 'finished', state: 'completed' })
    expect(await app.job(other.id).get()).toMatchObject({ state: 'completed', result: 'ran' })
  })
}

it('a running handler is told of its cancel within a second', async () => {
  const reasons: unknown[] = []
  const job = defineJob({
    ...base,
    name: 'told',
    handler: async (ctx) => void reasons.push(await aborted(ctx.signal)),
  })
  await using opened = await openApp({ jobs: [job], leaseMs: 60_000 })
  const { app, events } = opened
  await app.worker().start()
  const { id } = await app.enqueue(job, null)
  await events.first('attempt.started')

  const fromMs = performance.now()
  await app.job(id).cancel()
  await eventually('it is told', () => reasons.length === 1)

  expect(performance.now() - fromMs).toBeLessThan(1000)
  expect(reasons[0]).toBeInstanceOf(JobCancelledError)
  expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'cancelled' })
})

const errand = defineJob({
  name: 'errand',
  input: anything<{ readonly act: string }>(),
  idempotent: true,
  handler: () => {},
})

it('a handler in another process is told of its cancel within a second', async () => {
  await using opened = await openApp({ jobs: [errand] })
  await using worker = startProgram('test/faults/programs/worker.ts', {
    args: [JSON.stringify({ database: opened.db.url, leaseMs: 60_000 })],
  })
  await worker.message('ready')
  const { id } = await opened.app.enqueue(errand, { act: 'wait' })
  await worker.message('handling')

  const fromMs = performance.now()
  await opened.app.job(id).cancel()
  const told = await worker.message('aborted')

  expect(performance.now() - fromMs).toBeLessThan(1000)
  expect(told).toMatchObject({ job: id, reason: 'JobCancelledError' })
  expect(await opened.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
    state: 'cancelled',
    attempts: 1,
  })
})

it('a job that is cancelled while it is on its way to a worker does not start there', async () => {
  const job = defineJob({ ...base, name: 'plain', handler: () => 'ran' })
  await using db = await createDatabase()
  await using proxy = await startProxy(db.url)
  await using opened = appOn(db, { jobs: [job], database: proxy.url(), leaseMs: 60_000 })
  const { app, events } = opened
  await app.worker().start()
  const claim = proxy.holdAnswer(/claim_(few_)?jobs/)
  const { id } = await app.enqueue(job, null)
  const { release } = await claim
  const answered = new Promise<void>((resolve) => {
    proxy.events.on('answer', ({ round }) => {
      if (round.texts.some((text) => text.includes('renew_leases'))) resolve()
    })
  })

  const answer = await app.job(id).cancel({ reason: 'why' })
  await answered
  release()

  expect(answer).toEqual({ status: 'cancelling' })
  expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
    state: 'cancelled',
    reason: 'why',
    attempts: 0,
  })
  expect(await events.first('job.cancelled')).toMatchObject({ jobId: id })
  expect(events.of('attempt.started')).toEqual([])
})

it('with notifications lost it is told within a heartbeat', async () => {
  await using opened = await openApp({ jobs: [errand] })
  await using worker = startProgram('test/faults/programs/worker.ts', {
    args: [JSON.stringify({ database: opened.db.url, leaseMs: 3000, pooler: true, maxPollMs: 500 })],
  })
  await worker.message('ready')
  const { id } = await opened.app.enqueue(errand, { act: 'wait' })
  await worker.message('handling')

  const fromMs = performance.now()
  await opened.app.job(id).cancel()
  await worker.message('aborted')

  expect(performance.now() - fromMs).toBeLessThan(1000 + 1000)
  expect(await opened.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'cancelled' })
})

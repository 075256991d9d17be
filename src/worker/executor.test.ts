import type { StandardSchemaV1 } from '@standard-schema/spec'
import { expect, it } from 'vitest'
import { JobCancelledError, LeaseLostError, ShutdownError } from '../base/errors.ts'
import { silentLogger } from '../base/logger.ts'
import type { JobContext } from '../jobs/context.ts'
import { type AnyJob, defineJob } from '../jobs/define-job.ts'
import { Resources } from '../resources/resources.ts'
import type { ClaimedJob } from './claimed-job.ts'
import { type AttemptEnd, startAttempt } from './executor.ts'
import type { ContextServices } from './handler-context.ts'
import { Lease } from './lease.ts'

interface Wanted {
  readonly timeoutMs?: number
  readonly abortGraceMs?: number
  readonly validate?: (
    value: unknown,
  ) => { readonly value: unknown } | { readonly issues: readonly { message: string }[] }
}

const other = defineJob({
  name: 'other',
  input: schemaOf((value) => ({ value })),
  idempotent: true,
  handler: () => {},
})

function start(
  handler: (ctx: JobContext<object, 'enqueue:other'>) => unknown,
  { validate = (value) => ({ value }), ...options }: Wanted = {},
) {
  const job = defineJob({
    name: 'job',
    input: schemaOf(validate),
    effects: ['enqueue:other'],
    idempotent: true,
    abortGraceMs: 30,
    ...options,
    handler,
  }) as AnyJob
  return startClaimed('job', new Map([['job', job]]))
}

function startClaimed(name: string | null, jobs: ReadonlyMap<string, AnyJob>) {
  const claimed = {
    id: '1',
    name,
    lease: new Lease(5n, 1n, 1),
    queue: 'q',
    attempt: 1,
    maxAttempts: 2,
    enqueuedAtMs: 0,
    scheduledAtMs: 0,
  } as ClaimedJob
  const ends: AttemptEnd[] = []
  let resolve: (end: AttemptEnd) => void = () => {}
  const ended = new Promise<AttemptEnd>((yes) => {
    resolve = yes
  })
  const services = {
    logger: silentLogger,
    enqueue: async () => ({ id: '2', status: 'created' }) as never,
    resources: new Resources({ replacements: new Map(), onError: () => {} }),
  } as unknown as ContextServices
  const attempt = startAttempt(claimed, { jobs, services }, (_, end) => {
    ends.push(end)
    resolve(end)
  })
  return { attempt, ended, ends }
}

function schemaOf(validate: NonNullable<Wanted['validate']>): StandardSchemaV1 {
  return { '~standard': { version: 1, vendor: 'test', validate } }
}

const never = async () => await new Promise(() => {})
const untilAborted = async (ctx: JobContext) =>
  await new Promise((_, reject) =>
    ctx.signal.addEventListener('abort', () => reject(ctx.signal.reason as Error)),
  )
const turn = async (ms = 0) => await new Promise((resolve) => setTimeout(resolve, ms))

it('ends with what the handler returned, thrown or rejected alike', async () => {
  const throwing = () => {
    throw new Error('no')
  }
  expect((await start(() => 7).ended).outcome).toMatchObject({ to: 'completed', result: '7' })
  expect((await start(throwing).ended).outcome).toMatchObject({ to: 'scheduled', ended: 'failed' })
  expect((await start(async () => throwing()).ended).outcome).toMatchObject({
    to: 'scheduled',
    ended: 'failed',
  })
})

it('parks, without calling the handler, an input that the schema refuses', async () => {
  let called = false
  const end = await start(() => void (called = true), { validate: () => ({ issues: [{ message: 'no' }] }) })
    .ended
  expect(end.outcome).toMatchObject({ to: 'parked', contract: expect.any(String) })
  expect(called).toBe(false)
})

it('takes a schema that throws as one that refuses', async () => {
  const end = await start(() => 1, {
    validate: () => {
      throw new Error('schema')
    },
  }).ended
  expect(end.outcome).toMatchObject({ to: 'parked' })
})

it('parks a job it does not know', async () => {
  expect((await startClaimed('other', new Map()).ended).outcome).toMatchObject({
    to: 'parked',
    reason: 'this worker does not know the job "other"',
    contract: null,
  })
  const { outcome } = await startClaimed(null, new Map()).ended
  expect(outcome).toMatchObject({ reason: 'its job row is gone' })
})

it('times out a handler that stops when told', async () => {
  const end = await start(untilAborted, { timeoutMs: 10 }).ended
  expect(end).toMatchObject({ abandoned: false, outcome: { to: 'scheduled', ended: 'timed-out' } })
})

it('takes a success within the grace as completed, late', async () => {
  const late = async (ctx: JobContext) => await untilAborted(ctx).catch(() => 'done')
  expect((await start(late, { timeoutMs: 10 }).ended).outcome).toEqual({
    to: 'completed',
    result: '"done"',
    late: true,
  })
})

it('abandons a handler that does not return within the grace, and hears nothing of it afterwards', async () => {
  let resolve: (value: unknown) => void = () => {}
  const { ended, ends } = start(
    async () =>
      await new Promise((yes) => {
        resolve = yes
      }),
    { timeoutMs: 10, abortGraceMs: 20 },
  )
  expect(await ended).toMatchObject({ abandoned: true, outcome: { to: 'scheduled', ended: 'timed-out' } })
  resolve('late')
  await turn()
  expect(ends).toHaveLength(1)
})

it('hands back what a shutdown interrupts: thrown within the grace, or ended by force', async () => {
  const polite = start(untilAborted)
  polite.attempt.abort(new ShutdownError())
  expect((await polite.ended).outcome).toEqual({ to: 'ready', ended: 'interrupted' })
  const deaf = start(never)
  deaf.attempt.interrupt()
  expect(await deaf.ended).toMatchObject({ abandoned: true, outcome: { to: 'ready', ended: 'interrupted' } })
})

it('keeps the first reason: a timeout is not turned into a shutdown', async () => {
  const reasons: unknown[] = []
  const { attempt, ended } = start(async (ctx) => {
    ctx.signal.addEventListener('abort', () => reasons.push(ctx.signal.reason))
    return await never()
  })
  const first = new JobCancelledError()
  attempt.abort(first)
  attempt.abort(new ShutdownError())
  await ended
  expect(reasons).toEqual([first])
})

it('keeps what the handler decided, even if it swallows the exception that carried it', async () => {
  const end = await start((ctx) => {
    try {
      ctx.snooze({ inMs: 9 })
    } catch {
      // A handler with a catch-all around everything.
    }
    return 'swallowed'
  }).ended
  expect(end.outcome).toEqual({ to: 'scheduled', ended: 'snoozed', delayMs: 9 })
})

it('gives a signal that was asked for late its reason all the same', async () => {
  const { attempt, ended } = start(async (ctx) => {
    await turn(10)
    return ctx.signal.aborted && (ctx.signal.reason as Error).name
  })
  attempt.abort(new LeaseLostError({ jobId: 1n, fencingToken: 5n }))
  expect((await ended).outcome).toMatchObject({ result: '"LeaseLostError"' })
})

it('refuses further writes of the context once the lease is lost', async () => {
  const lost = new LeaseLostError({ jobId: 1n, fencingToken: 5n })
  const answers: unknown[] = []
  const { attempt, ended } = start(async (ctx) => {
    answers.push(await ctx.enqueue(other, null))
    await turn(10)
    answers.push(await ctx.enqueue(other, null).catch((error: unknown) => error))
  })
  await turn()
  attempt.abort(lost)
  await ended
  expect(answers).toEqual([{ id: '2', status: 'created' }, lost])
})

it('tells by when it has to be over', () => {
  expect(start(never).attempt.hardDeadlineMs).toBe(Number.POSITIVE_INFINITY)
  const { attempt } = start(never, { timeoutMs: 1000, abortGraceMs: 500 })
  expect(attempt.hardDeadlineMs - performance.now()).toBeGreaterThan(1300)
  expect(attempt.hardDeadlineMs - performance.now()).toBeLessThanOrEqual(1500)
  attempt.interrupt()
})

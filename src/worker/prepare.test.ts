import { describe, expect, it } from 'vitest'
import { z } from 'zod'
import { AuthorizationRefusedError, JobTimeoutError } from '../base/errors.ts'
import { silentLogger } from '../base/logger.ts'
import type { Authorize } from '../jobs/authorize.ts'
import { defineJob } from '../jobs/define-job.ts'
import { resource } from '../resources/resource.ts'
import { Resources } from '../resources/resources.ts'
import type { ClaimedJob } from './claimed-job.ts'
import { type ContextServices, HandlerContext } from './handler-context.ts'
import { Lease } from './lease.ts'
import { needsPreparation, prepare } from './prepare.ts'

const claimed = {
  id: '1',
  name: 'job',
  lease: new Lease(5n, 1n, 1),
  queue: 'q',
  tenant: '',
  attempt: 1,
  maxAttempts: 2,
  enqueuedAtMs: 0,
  scheduledAtMs: 0,
  context: { actor: 'ada' },
} as ClaimedJob

function services(authorize?: Authorize): ContextServices {
  const resources = new Resources({ replacements: new Map(), onError: () => {} })
  const enqueue: ContextServices['enqueue'] = async () => ({ id: '2', status: 'created' })
  return { logger: silentLogger, enqueue, resources, authorize } as unknown as ContextServices
}

const mailer = resource({ name: 'mailer', provides: ['send:email'], create: () => 'built' })

function jobOf(authorize?: Authorize<null>) {
  return defineJob({
    name: 'job',
    input: z.null(),
    effects: ['send:email'],
    uses: { mailer },
    idempotent: true,
    handler: () => {},
    ...(authorize ? { authorize } : {}),
  })
}

async function run(ofJob: Authorize<null> | undefined, ofApp?: Authorize) {
  const given = services(ofApp)
  const context = new HandlerContext(claimed, given, { job: undefined, startedMs: 0 })
  const error = await prepare(jobOf(ofJob), null, context, given).then(
    () => undefined,
    (thrown: unknown) => thrown,
  )
  return { context, error }
}

describe('before the handler', () => {
  it('nothing is waited for without resources and without authorize', () => {
    const plain = defineJob({ name: 'plain', input: z.null(), idempotent: true, handler: () => {} })
    expect(needsPreparation(plain, services())).toBe(false)
    expect(
      needsPreparation(
        plain,
        services(() => true),
      ),
    ).toBe(true)
    expect(needsPreparation(jobOf(), services())).toBe(true)
    expect(needsPreparation({ ...plain, authorize: () => true }, services())).toBe(true)
  })

  it.each([[() => true], [() => {}], [async () => {}]])(
    'a yes lets it run with its resources',
    async (yes) => {
      const { context, error } = await run(yes)
      expect(error).toBeUndefined()
      expect(context.resources).toEqual({ mailer: 'built' })
      expect(context.decision).toBeUndefined()
    },
  )

  it.each([
    [false, 'authorize said no'],
    [{ refuse: 'ada has left' }, 'ada has left'],
    [null, 'none of those'],
    ['yes', 'none of those'],
    [1, 'none of those'],
    [{}, 'none of those'],
    [{ discard: true }, 'none of those'],
    [{ refuse: 5 }, 'none of those'],
  ])('%j fails the attempt, and builds nothing', async (answer, reason) => {
    const { context, error } = await run(() => answer as never)
    expect(error).toBeInstanceOf(AuthorizationRefusedError)
    expect(error).toMatchObject({ code: 'AUTHORIZATION_REFUSED', jobName: 'job' })
    expect((error as AuthorizationRefusedError).reason).toContain(reason)
    expect(context.resources).toEqual({})
    expect(context.decision).toBeUndefined()
  })

  it('a discard is a decision, with its reason', async () => {
    const { context, error } = await run(() => ({ discard: 'the company was closed' }))
    expect(error).toBeInstanceOf(Error)
    expect(context.decision).toEqual({ kind: 'discard', reason: 'not authorized: the company was closed' })
  })

  it('what authorize throws is what fails the attempt', async () => {
    const thrown = new Error('directory is down')
    expect((await run(() => Promise.reject(thrown))).error).toBe(thrown)
  })

  it("the job's own authorize comes in place of the application's, and both see context and input", async () => {
    const seen: unknown[] = []
    const look =
      (who: string): Authorize =>
      (ctx, input) =>
        void seen.push([who, ctx.context['actor'], ctx.job.id, input])
    await run(look('job'), look('app'))
    await run(undefined, look('app'))
    expect(seen).toEqual([
      ['job', 'ada', '1', null],
      ['app', 'ada', '1', null],
    ])
  })

  it('an attempt that has to end meanwhile does not go on to the handler', async () => {
    const given = services()
    const context = new HandlerContext(claimed, given, { job: undefined, startedMs: 0 })
    const reason = new JobTimeoutError({ timeoutMs: 1 })
    const slow = jobOf(() => context.abort(reason))
    await expect(prepare(slow, null, context, given)).rejects.toBe(reason)
  })
})

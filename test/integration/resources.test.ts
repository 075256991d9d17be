import { expect, it } from 'vitest'
import { defineJob, resource } from '../../src/index.ts'
import { anything, describeEachHome, openPgHome } from './homes.ts'

/** A mailer that writes down what becomes of it. */
function mailerOf(log: string[], create?: () => void) {
  return resource({
    name: 'mailer',
    provides: ['send:email'],
    create: () => {
      log.push('created')
      create?.()
      return { send: (to: string) => log.push(`sent to ${to}`) }
    },
    dispose: () => log.push('freed'),
  })
}

function sendOf(mailer: ReturnType<typeof mailerOf>) {
  return defineJob({
    name: 'send',
    input: anything<string>(),
    uses: { mailer },
    effects: ['send:email'],
    idempotent: true,
    maxAttempts: 2,
    retry: { type: 'fixed', delayMs: 0 },
    handler: (ctx, to) => void ctx.resources.mailer.send(to),
  })
}

describeEachHome('a resource', ({ open }) => {
  it('is built once for a worker, at the first job that uses it, and freed when the worker stops', async () => {
    const log: string[] = []
    const send = sendOf(mailerOf(log))
    const empty: unknown[] = []
    const plain = defineJob({
      name: 'plain',
      input: anything(),
      idempotent: true,
      handler: (ctx) => void empty.push(ctx.resources, Object.isFrozen(ctx.resources)),
    })
    await using home = await open({ jobs: [send, plain] })
    const worker = home.app.worker()
    await worker.start()
    const first = await home.app.enqueue(plain, null)
    await home.app.job(first.id).wait({ timeoutMs: 20_000 })
    expect(empty).toEqual([{}, true])
    expect(log).toEqual([])

    const jobs = await home.app.enqueueMany(['a', 'b', 'c'].map((input) => ({ job: send, input })))
    for (const { id } of jobs)
      expect(await home.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
    await worker.stop()

    expect(log.toSorted()).toEqual(['created', 'freed', 'sent to a', 'sent to b', 'sent to c'])
    expect(log.at(-1)).toBe('freed')
  })

  it('that cannot be built fails the attempt, and is built for the next', async () => {
    const log: string[] = []
    const send = sendOf(
      mailerOf(log, () => {
        if (log.length === 1) throw new Error('no route')
      }),
    )
    await using home = await open({ jobs: [send] })
    const failures: unknown[] = []
    home.app.events.on('attempt.failed', ({ error }) => void failures.push(error))
    await home.work()

    const { id } = await home.app.enqueue(send, 'a')

    expect(await home.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
      state: 'completed',
      attempts: 2,
    })
    expect(log).toEqual(['created', 'created', 'sent to a'])
    expect(failures).toEqual([
      expect.objectContaining({ code: 'RESOURCE', cause: expect.objectContaining({ message: 'no route' }) }),
    ])
  })

  it('can be replaced by name for an environment', async () => {
    const log: string[] = []
    const sent: string[] = []
    const send = sendOf(mailerOf(log))
    const fake = { create: () => ({ send: (to: string) => sent.push(to) }) }
    await using home = await open({ jobs: [send], resources: { mailer: fake } })
    await home.work()
    const { id } = await home.app.enqueue(send, 'a')
    await home.app.job(id).wait({ timeoutMs: 20_000 })
    expect([log, sent]).toEqual([[], ['a']])
  })

  it('that cannot be freed is told as an event, and the worker stops all the same', async () => {
    const stuck = resource({
      name: 'stuck',
      provides: ['call:x'],
      create: () => 1,
      dispose: () => {
        throw new Error('still busy')
      },
    })
    const job = defineJob({
      name: 'job',
      input: anything(),
      uses: { stuck },
      effects: ['call:x'],
      idempotent: true,
      handler: () => {},
    })
    await using home = await open({ jobs: [job] })
    const errors: unknown[] = []
    home.app.events.on('worker.error', (event) => void errors.push(event))
    const worker = home.app.worker()
    await worker.start()
    const { id } = await home.app.enqueue(job, null)
    await home.app.job(id).wait({ timeoutMs: 20_000 })

    await worker.stop()

    expect(errors).toEqual([
      {
        during: 'freeing resource "stuck"',
        error: expect.objectContaining({ message: 'still busy' }),
        retryInMs: 0,
      },
    ])
  })
})

it('a resource is never built by an application that only enqueues', async () => {
  const log: string[] = []
  const send = sendOf(mailerOf(log))
  await using home = await openPgHome({ jobs: [send] })
  await home.app.enqueue(send, 'a')
  await home.app.close()
  expect(log).toEqual([])
})

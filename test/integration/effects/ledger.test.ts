import { expect, it } from 'vitest'
import { defineJob, EffectUncertainError, notHappened, PermanentError } from '../../../src/index.ts'
import { anything, Gate } from '../../faults/handlers.ts'
import { eventually } from '../../support/eventually.ts'
import { type AnyContext, everything } from '../../support/everything.ts'
import { describeEachApp, type EachApp } from './each-app.ts'

function job(handler: (ctx: AnyContext, input: never) => unknown, more: object = {}) {
  return defineJob({
    name: 'job',
    input: anything<never>(),
    idempotent: true,
    retry: { type: 'fixed', delayMs: 0 },
    ...everything,
    ...more,
    handler: handler as never,
  })
}

async function runOne({ app }: EachApp, one: ReturnType<typeof job>, options: object = {}) {
  const { id } = await app.enqueue(one, null as never, options)
  return { id, ...(await app.job(id).wait({ timeoutMs: 20_000 })) }
}

const rows = async ({ sql }: EachApp) =>
  await sql('select name, key, state::text, calls, doubts from holdfast.effect order by name, key')

describeEachApp('an effect', ({ open }) => {
  it('is called once however often its job is tried, and gives the same result each time', async () => {
    const calls: string[] = []
    const results: unknown[] = []
    const mail = job(async (ctx) => {
      const result = await ctx.effect('send:email', { key: 'order-1' }, ({ idempotencyKey }) => {
        calls.push(idempotencyKey)
        return { at: new Date(0), n: calls.length }
      })
      results.push(result)
      if (ctx.job.attempt < 3) throw new Error('after')
    })
    await using opened = await open({ jobs: [mail] })

    expect(await runOne(opened, mail)).toMatchObject({ state: 'completed', attempts: 3 })
    expect(await runOne(opened, mail)).toMatchObject({ state: 'completed', attempts: 3 })
    expect(calls).toHaveLength(1)
    expect(new Set(results.map((result) => JSON.stringify(result)))).toEqual(
      new Set(['{"at":"1970-01-01T00:00:00.000Z","n":1}']),
    )
    expect(await rows(opened)).toMatchObject([{ state: 'happened', calls: 1 }])
  })

  it('that threw is in doubt: its job is discarded and asks, whatever the handler does with the error', async () => {
    let calls = 0
    const mail = job(async (ctx) => {
      const send = async () =>
        await ctx.effect('send:email', { key: 'k' }, () => {
          calls += 1
          throw new Error('connection reset')
        })
      await send().catch(() => undefined)
      const second = await send().catch((error: unknown) => error)
      expect(second).toBeInstanceOf(EffectUncertainError)
      return 'as if nothing had happened'
    })
    await using opened = await open({ jobs: [mail] })
    const { id, ...end } = await runOne(opened, mail)

    expect(end).toMatchObject({ state: 'discarded', reason: 'effect-uncertain' })
    expect(calls).toBe(1)
    expect(opened.events.of('effect.uncertain')).toMatchObject([
      { effect: 'send:email', key: 'k', choice: 'ask' },
    ])
    expect(await opened.sql('select job_id::text as id, name, key from holdfast.effect_question')).toEqual([
      { id, name: 'send:email', key: 'k' },
    ])
  })

  it('in doubt is repeated with the same idempotency key where that was chosen', async () => {
    const keys: string[] = []
    const mail = job(async (ctx) => {
      await ctx.effect('send:email', { key: 'k', ifUncertain: 'repeat' }, ({ idempotencyKey }) => {
        keys.push(idempotencyKey)
        if (ctx.job.attempt === 1) throw new Error('timeout')
      })
    })
    await using opened = await open({ jobs: [mail] })

    expect(await runOne(opened, mail)).toMatchObject({ state: 'completed', attempts: 2 })
    expect(keys).toHaveLength(2)
    expect(new Set(keys).size).toBe(1)
    expect(await rows(opened)).toMatchObject([{ state: 'happened', calls: 2, doubts: 1 }])
  })

  it('in doubt is not called where the provider says that it happened, and is where it says that it did not', async () => {
    for (const happened of [true, false]) {
      let calls = 0
      const mail = job(async (ctx) => {
        const ifUncertain = () =>
          happened ? { happened: true as const, result: 'from the provider' } : { happened: false as const }
        return await ctx.effect('send:email', { key: 'k', ifUncertain }, () => {
          calls += 1
          if (calls === 1) throw new Error('timeout')
          if (calls === 2) throw notHappened(new Error('refused'))
          return 'third'
        })
      })
      await using opened = await open({ jobs: [mail] })
      const end = await runOne(opened, mail)

      // Refuted, the first call leaves no doubt: the refused second is simply open, and nobody is asked.
      expect(end).toMatchObject({ state: 'completed', result: happened ? 'from the provider' : 'third' })
      expect(calls).toBe(happened ? 1 : 3)
      expect(await rows(opened)).toMatchObject([{ state: 'happened', doubts: 0 }])
    }
  })

  it('that certainly did not happen is open again, by notHappened as an error or as an option', async () => {
    const declined = job(async (ctx) => {
      await ctx.effect('call:bank', { key: 'a' }, () => {
        throw notHappened(new PermanentError('declined'))
      })
    })
    const refused = job(
      async (ctx) => {
        const options = {
          key: 'b',
          notHappened: (error: unknown) => (error as Error).message === 'ECONNREFUSED',
        }
        await ctx.effect('call:bank', options, () => {
          if (ctx.job.attempt === 1) throw new Error('ECONNREFUSED')
        })
      },
      { name: 'refused' },
    )
    await using opened = await open({ jobs: [declined, refused] })

    expect(await runOne(opened, declined)).toMatchObject({ state: 'discarded', reason: 'permanent error' })
    expect(await runOne(opened, refused)).toMatchObject({ state: 'completed', attempts: 2 })
    expect(await rows(opened)).toMatchObject([
      { key: 'a', state: 'open' },
      { key: 'b', state: 'happened', doubts: 0 },
    ])
  })

  it('after a doubt stays in doubt, whatever a later call says of itself', async () => {
    let calls = 0
    const mail = job(async (ctx) => {
      const ifUncertain = ctx.job.attempt < 3 ? ('repeat' as const) : ('ask' as const)
      await ctx.effect('send:email', { key: 'k', ifUncertain }, () => {
        calls += 1
        if (calls === 1) throw new Error('timeout')
        throw notHappened(new Error('refused'))
      })
    })
    await using opened = await open({ jobs: [mail] })

    expect(await runOne(opened, mail)).toMatchObject({ state: 'discarded', reason: 'effect-uncertain' })
    expect(calls).toBe(2)
    expect(await rows(opened)).toMatchObject([{ state: 'uncertain', calls: 2, doubts: 1 }])
  })

  it('of two jobs with one key at once is called by one, and the other waits and gets its result', async () => {
    const gate = new Gate()
    let calls = 0
    const mail = job(async (ctx) => {
      return await ctx.effect('send:email', { key: 'shared' }, async () => {
        calls += 1
        await gate.wait()
        return calls
      })
    })
    await using opened = await open({ jobs: [mail] })
    const { app } = opened
    const ids = [await app.enqueue(mail, null as never), await app.enqueue(mail, null as never)].map(
      ({ id }) => id,
    )
    await eventually('both run', () => opened.events.of('attempt.started').length === 2)
    await eventually('one calls', () => gate.waiting === 1)
    gate.open()

    for (const id of ids)
      expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed', result: 1 })
    expect(calls).toBe(1)
  })

  it('that is called elsewhere for longer than waitMs is told as busy, and not called', async () => {
    const gate = new Gate()
    const mail = job(
      async (ctx) => await ctx.effect('send:email', { key: 'k', waitMs: 50 }, async () => await gate.wait()),
      { maxAttempts: 1 },
    )
    await using opened = await open({ jobs: [mail] })
    const first = await opened.app.enqueue(mail, null as never)
    await eventually('one calls', () => gate.waiting === 1)
    const second = await runOne(opened, mail)

    expect(second.state).toBe('discarded')
    expect((await opened.app.job(second.id).get())?.error).toMatchObject({ code: 'EFFECT_BUSY' })
    gate.open()
    expect(await opened.app.job(first.id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
  })

  it('twice at once in one attempt is one call', async () => {
    let calls = 0
    const mail = job(async (ctx) => {
      const send = () =>
        ctx.effect('send:email', { key: 'k' }, async () => {
          calls += 1
          await new Promise((resolve) => setTimeout(resolve, 20))
          return calls
        })
      return await Promise.all([send(), send()])
    })
    await using opened = await open({ jobs: [mail] })

    expect(await runOne(opened, mail)).toMatchObject({ state: 'completed', result: [1, 1] })
  })

  it('beside one that fails is still recorded before the attempt ends, and not in doubt for the next', async () => {
    let calls = 0
    const pair = job(async (ctx) => {
      const slow = ctx.effect('send:slow', { key: 'k' }, async () => {
        calls += 1
        await new Promise((resolve) => setTimeout(resolve, 100))
        return 'slow'
      })
      const quick = ctx.effect('send:quick', { key: 'k' }, () => {
        if (ctx.job.attempt === 1) throw notHappened(new Error('refused'))
        return 'quick'
      })
      return await Promise.all([slow, quick])
    })
    await using opened = await open({ jobs: [pair] })

    expect(await runOne(opened, pair)).toMatchObject({
      state: 'completed',
      attempts: 2,
      result: ['slow', 'quick'],
    })
    expect(calls).toBe(1)
  })

  it('that a handler does not wait for belongs to the attempt all the same: its failure fails it', async () => {
    const mail = job(async (ctx) => {
      void ctx.effect('send:email', { key: 'k' }, async () => {
        await new Promise((resolve) => setTimeout(resolve, 30))
        if (ctx.job.attempt === 1) throw notHappened(new Error('too late to hear of'))
      })
      return await Promise.resolve('returned')
    })
    await using opened = await open({ jobs: [mail] })

    expect(await runOne(opened, mail)).toMatchObject({ state: 'completed', attempts: 2, result: 'returned' })
    expect(opened.events.of('attempt.failed')).toMatchObject([{ error: new Error('too late to hear of') }])
    expect(await rows(opened)).toMatchObject([{ state: 'happened', calls: 2 }])
  })

  it('takes its key from the unique key of its job, with names and keys that cannot be mixed up', async () => {
    const calls: string[] = []
    const handler = async (ctx: AnyContext) => {
      await ctx.effect('send:email', {}, ({ idempotencyKey }) => void calls.push(idempotencyKey))
    }
    const jobs = [job(handler, { name: 'a' }), job(handler, { name: 'a:b' })] as const
    await using opened = await open({ jobs })

    expect(await runOne(opened, jobs[0], { uniqueKey: 'b:c' })).toMatchObject({ state: 'completed' })
    expect(await runOne(opened, jobs[1], { uniqueKey: 'c' })).toMatchObject({ state: 'completed' })
    expect(await runOne(opened, jobs[1], { uniqueKey: 'c' })).toMatchObject({ state: 'completed' })
    expect(calls).toHaveLength(2)
    expect(new Set(calls).size).toBe(2)
    expect((await rows(opened)).map(({ key }) => key)).toEqual(['a%3Ab:c', 'a:b:c'])
  })

  it('without a key, or with one that cannot be right, is refused before anything is called', async () => {
    const errors: unknown[] = []
    const mail = job(async (ctx) => {
      for (const key of [undefined, '', ' ', 'two\nlines', 'x'.repeat(1025), 'nul\0', '\ud800', 7]) {
        const options = { key } as { key: string }
        await ctx
          .effect('send:email', options, () => errors.push('called'))
          .catch((error: unknown) => {
            errors.push((error as { code: string; field: string }).code, (error as { field: string }).field)
          })
      }
    })
    await using opened = await open({ jobs: [mail] })
    await runOne(opened, mail)

    expect(errors).toEqual(Array.from({ length: 8 }, () => ['INVALID_ARGUMENT', 'key']).flat())
    expect(await rows(opened)).toEqual([])
  })

  it('with a result that JSON cannot hold is recorded all the same, altered, and never called again', async () => {
    const cyclic: Record<string, unknown> = { n: 1n, text: 'a\0b\ud800' }
    cyclic['self'] = cyclic
    const results: unknown[] = []
    let calls = 0
    const mail = job(async (ctx) => {
      for (const [index, value] of [
        cyclic,
        'x'.repeat(300_000),
        undefined,
        null,
        0,
        '',
        false,
        [],
      ].entries()) {
        const one = async () => await ctx.effect('call:x', { key: `k${index}` }, () => ((calls += 1), value))
        results.push([await one(), await one()])
      }
    })
    await using opened = await open({ jobs: [mail] })

    expect(await runOne(opened, mail)).toMatchObject({ state: 'completed', attempts: 1 })
    expect(calls).toBe(8)
    for (const [first, second] of results as [unknown, unknown][]) expect(second).toEqual(first)
    expect((results as unknown[][]).slice(2).map(([first]) => first)).toEqual([null, null, 0, '', false, []])
    expect(opened.events.of('result.altered')).toHaveLength(2)
  })

  it('whose function throws anything at all leaves a doubt with a text', async () => {
    const hostile = Object.defineProperty({}, 'message', {
      get() {
        throw new Error('not even this')
      },
    })
    const mail = job(
      async (ctx) => {
        for (const [index, thrown] of ['boom', undefined, hostile].entries()) {
          const notHappenedThrows = () => {
            throw new Error('from notHappened')
          }
          const options = { key: `k${index}`, notHappened: notHappenedThrows }
          await ctx
            .effect('call:x', options, () => {
              throw thrown
            })
            .catch((error: unknown) => expect(error).toBe(thrown))
        }
      },
      { maxAttempts: 1 },
    )
    await using opened = await open({ jobs: [mail] })

    expect(await runOne(opened, mail)).toMatchObject({ state: 'completed' })
    const recorded = await opened.sql<{ state: string; error: string }>(
      'select state::text, error::text from holdfast.effect order by key',
    )
    expect(recorded.map(({ state }) => state)).toEqual(['uncertain', 'uncertain', 'uncertain'])
    for (const { error } of recorded)
      expect(JSON.parse(error)).toMatchObject({ message: expect.stringMatching(/./) })
  })

  it('inside a transaction is refused, as are checkpoint and progress: they would not roll back with it', async () => {
    const codes: unknown[] = []
    const mail = job(async (ctx) => {
      await ctx.transaction(async () => {
        const calls = [
          () => ctx.effect('call:x', { key: 'k' }, () => 1),
          () => ctx.checkpoint(1),
          () => ctx.progress(0.5),
        ]
        for (const call of calls)
          await call().catch((error: unknown) => codes.push((error as { code: string }).code))
      })
    })
    await using opened = await open({ jobs: [mail] })

    expect(await runOne(opened, mail)).toMatchObject({ state: 'completed' })
    expect(codes).toEqual(['OUTSIDE_TRANSACTION', 'OUTSIDE_TRANSACTION', 'OUTSIDE_TRANSACTION'])
  })
})

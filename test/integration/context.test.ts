import { expect, it } from 'vitest'
import { type Authorization, type ContextData, defineJob, limits } from '../../src/index.ts'
import { anything, describeEachHome, doorsOf, note } from './homes.ts'

const ada = { actor: 'ada', company: 7, tags: ['a', { b: null }] }

describeEachHome('the context of a job', ({ kind, open }) => {
  it.each(doorsOf(kind))('travels to the handler by $name', async (door) => {
    const seen: ContextData[] = []
    const look = defineJob({
      name: 'look',
      input: anything(),
      idempotent: true,
      handler: (ctx) => void seen.push(ctx.context),
    })
    await using home = await open({ jobs: [look] })
    await home.work()

    for (const context of [ada, undefined, null]) {
      const { id } = await door.enqueue(home, look, 1, { context })
      await home.app.job(id).wait({ timeoutMs: 20_000 })
    }

    expect(seen).toEqual([ada, {}, {}])
  })

  it('is inherited by what a handler enqueues, unless it says otherwise, and is in each line of its log', async () => {
    const seen = new Map<unknown, ContextData>()
    const lines: unknown[] = []
    const child = defineJob({
      name: 'child',
      input: anything<string>(),
      idempotent: true,
      handler: (ctx, name) => void seen.set(name, ctx.context),
    })
    const parent = defineJob({
      name: 'parent',
      input: anything(),
      effects: ['enqueue:child'],
      idempotent: true,
      handler: async (ctx) => {
        ctx.log.info('here')
        await ctx.enqueue(child, 'heir', { uniqueKey: 'k' })
        await ctx.enqueue(child, 'other', { context: { actor: 'bob' } })
        await ctx.enqueue(child, 'none', { context: null })
      },
    })
    const log = (_: string, fields: unknown) => void lines.push(fields)
    await using home = await open({
      jobs: [child, parent],
      logger: { debug: log, info: log, warn: log, error: log },
    })
    const { id } = await home.app.enqueue(parent, null, { context: ada })
    await home.work()
    await home.app.job(id).wait({ timeoutMs: 20_000 })
    for (const row of await home.sql<{ id: string }>(
      "select id::text from holdfast.job where name = 'child'",
    ))
      await home.app.job(row.id).wait({ timeoutMs: 20_000 })

    expect(Object.fromEntries(seen)).toEqual({ heir: ada, other: { actor: 'bob' }, none: {} })
    expect(lines).toEqual([expect.objectContaining({ jobName: 'parent', context: ada })])
  })

  it('is a bounded object, or nothing is sent', async () => {
    await using home = await open()
    const max = limits.contextBytes.default
    const fits = { a: 'x'.repeat(max - '{"a":""}'.length) }
    await home.app.enqueue(note, 1, { context: fits })
    const before = await home.count()
    for (const [context, code] of [
      [{ a: `${fits.a}x` }, 'TOO_LARGE'],
      [{ a: 1n }, 'NOT_STORABLE'],
      [['a'], 'INVALID_ARGUMENT'],
      ['a', 'INVALID_ARGUMENT'],
      [new Date(0), 'INVALID_ARGUMENT'],
    ] as const) {
      const refused = home.app.enqueue(note, 1, { context: context as never })
      await expect(refused).rejects.toMatchObject({ code })
      await expect(home.app.enqueueMany([{ job: note, context: context as never }])).rejects.toMatchObject({
        code,
        message: expect.stringContaining('jobs[0].context'),
      })
    }
    expect(await home.count()).toBe(before)
  })
})

describeEachHome('authorize', ({ open }) => {
  it('decides before the handler, and what it decided is recorded', async () => {
    const ran: unknown[] = []
    const decisions: Readonly<Record<string, Authorization>> = {
      runs: true,
      refused: { refuse: 'ada has left' },
      discarded: { discard: 'the company was closed' },
    }
    const job = defineJob({
      name: 'job',
      input: anything<string>(),
      idempotent: true,
      maxAttempts: 2,
      retry: { type: 'fixed', delayMs: 0 },
      handler: (_, name) => void ran.push(name),
    })
    await using home = await open({
      jobs: [job],
      authorize: ({ context }) => decisions[String(context['as'])],
    })
    await home.work()
    const names = Object.keys(decisions)
    const answers = await home.app.enqueueMany(names.map((as) => ({ job, input: as, context: { as } })))
    const ends = await Promise.all(
      answers.map(async ({ id }) => await home.app.job(id).wait({ timeoutMs: 20_000 })),
    )

    expect(ran).toEqual(['runs'])
    expect(ends).toMatchObject([
      { state: 'completed', attempts: 1 },
      { state: 'discarded', attempts: 2, reason: 'no attempts left' },
      { state: 'discarded', attempts: 1, reason: 'not authorized: the company was closed' },
    ])
    const errors = await home.sql<{ error: string }>(
      'select error::text from holdfast.attempt where job_id = $1::text::bigint and error is not null',
      [answers[1]?.id],
    )
    expect(errors.map(({ error }) => (JSON.parse(error) as { code: string }).code)).toContain(
      'AUTHORIZATION_REFUSED',
    )
    expect(errors[0]?.error).toContain('ada has left')
  })
})

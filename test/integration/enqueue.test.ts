import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { z } from 'zod'
import {
  defineApp,
  defineJob,
  InvalidArgumentError,
  InvalidInputError,
  NotStorableError,
  TooLargeError,
  UnknownJobError,
} from '../../src/index.ts'
import type { Job } from '../../src/jobs/define-job.ts'
import {
  anything,
  appOver,
  describeEachHome,
  doorsOf,
  enqueueBySql,
  type Home,
  type LooseOptions,
  note,
  runInHandler,
} from './homes.ts'

const order = defineJob({
  name: 'sales.sendConfirmation',
  queue: 'mail',
  input: z.object({ orderId: z.string() }).strict(),
  idempotent: true,
  maxAttempts: 7,
  priority: 3,
  handler: () => {},
})

const row = (home: Home, id: string) => home.sql('select * from holdfast.jobs where id = $1', [id])

describeEachHome('every door', ({ kind, open }) => {
  let home: Home

  beforeAll(async () => {
    home = await open({ jobs: [order] })
    await home.work()
  })

  afterAll(async () => {
    await home[Symbol.asyncDispose]()
  })

  describe.each(doorsOf(kind))('$name', (door) => {
    const enqueue = async (job: unknown, input: unknown, options?: LooseOptions) =>
      await door.enqueue(home, job as Job, input, options)

    it('stores the same row', async () => {
      const input = { orderId: 'é"\\\'😀' }
      const plain = await enqueue(order, input, { delayMs: 60_000 })
      const full = await enqueue(
        order,
        { orderId: '2' },
        { queue: 'default', priority: 9, maxAttempts: 1000, runAt: new Date('2999-01-01T09:00:00.123Z') },
      )

      expect(plain).toEqual({ id: expect.stringMatching(/^[1-9]\d*$/), status: 'created' })
      expect(await home.app.job(plain.id).get()).toMatchObject({
        name: 'sales.sendConfirmation',
        queue: 'mail',
        state: 'scheduled',
        maxAttempts: 7,
        priority: 3,
        attempts: 0,
        input,
        uniqueKey: null,
      })
      expect(await home.app.job(full.id).get()).toMatchObject({
        queue: 'default',
        priority: 9,
        maxAttempts: 1000,
        runAt: new Date('2999-01-01T09:00:00.123Z'),
      })
    })

    it('says "existing", with its id, for a key that is held', async () => {
      const key = `held ${door.name}`
      const held = await home.app.enqueue(note, 1, { uniqueKey: key, delayMs: 60_000 })

      const again = await enqueue(note, 2, { uniqueKey: key })
      const other = await enqueue(note, 3, { uniqueKey: key.toUpperCase(), delayMs: 60_000 })

      expect(again).toEqual({ id: held.id, status: 'existing' })
      expect(other.status).toBe('created')
      expect(other.id).not.toBe(held.id)
    })

    it('repeats its answer for an idempotency key', async () => {
      const options = { idempotencyKey: `call ${door.name}`, delayMs: 60_000 }
      const before = await home.count()

      const first = await enqueue(note, door.name, options)
      const again = await enqueue(note, door.name, options)

      expect(again).toEqual(first)
      expect(first.status).toBe('created')
      const stored = await home.sql('select from holdfast.job where input::text = $1', [
        JSON.stringify(door.name),
      ])
      expect(stored).toHaveLength(1)
      expect(await home.count()).toBeGreaterThan(before)
    })

    it('refuses what the schema refuses and jobs that are not listed, and stores nothing', async () => {
      const stranger = defineJob({
        name: 'stranger',
        input: order.input,
        idempotent: true,
        handler: () => {},
      })
      const stored = async () =>
        await home.sql('select from holdfast.job where name in ($1, $2)', [order.name, stranger.name])
      const before = await stored()

      for (const input of [{}, { orderId: 1 }, { orderId: '1', extra: true }, undefined, null, 'text']) {
        const refused = enqueue(order, input)
        await expect(refused).rejects.toThrow(InvalidInputError)
        await expect(refused).rejects.toMatchObject({ code: 'INVALID_INPUT', job: order.name })
      }
      // A handler cannot have declared a job that is not listed.
      const code = door.name === 'ctx.enqueue' ? 'UNDECLARED_EFFECT' : 'UNKNOWN_JOB'
      await expect(enqueue(stranger, { orderId: '1' })).rejects.toMatchObject({ code, changed: 'nothing' })

      expect(await stored()).toHaveLength(before.length)
    })
  })
})

describeEachHome('enqueue', ({ open }) => {
  it('refuses a job that only looks like one of the application', async () => {
    await using home = await open({ jobs: [order] })
    const double = defineJob({ name: order.name, input: order.input, idempotent: true, handler: () => {} })
    for (const job of [
      double,
      undefined,
      null,
      { name: 'sales.sendConfirmation' },
      'sales.sendConfirmation',
    ]) {
      await expect(home.app.enqueue(job as unknown as typeof order, { orderId: '1' })).rejects.toThrow(
        UnknownJobError,
      )
    }
  })

  it('refuses what JSON cannot carry, and names where', async () => {
    await using home = await open()
    const cyclic: { self?: unknown } = {}
    cyclic.self = [cyclic]
    const bad: [unknown, string][] = [
      [{ total: 10n }, 'input.total'],
      [cyclic, 'input.self[0]'],
      [{ lines: [{ sku: Number.NaN }] }, 'input.lines[0].sku'],
    ]
    for (const [input, path] of bad) {
      await expect(home.app.enqueue(note, input)).rejects.toMatchObject({ code: 'NOT_STORABLE', path })
      await expect(home.app.enqueue(note, input)).rejects.toThrow(NotStorableError)
    }
    await expect(home.app.enqueue(note, 'x'.repeat(1024 * 1024))).rejects.toThrow(TooLargeError)
    const date = await home.app.enqueue(note, new Date(0))
    expect(await home.app.job(date.id).get()).toMatchObject({ input: '1970-01-01T00:00:00.000Z' })
    expect(await home.count()).toBe(1)
  })

  it('refuses arguments of the wrong kind with an error that says so', async () => {
    await using home = await open()
    const { app } = home
    const untyped = app as unknown as Record<
      'enqueue' | 'enqueueMany',
      (...args: unknown[]) => Promise<unknown>
    >
    await expect(untyped.enqueueMany('text')).rejects.toThrow(InvalidArgumentError)
    await expect(untyped.enqueueMany([{ job: note }, null])).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      field: 'jobs[1]',
    })
    await expect(untyped.enqueue(note, 1, 'text')).rejects.toThrow(InvalidArgumentError)
    await expect(untyped.enqueue(note, 1, { queue: 'nowhere' })).rejects.toMatchObject({
      field: 'options.queue',
    })
    await expect(untyped.enqueue(note, 1, { runAt: new Date(), delayMs: 1 })).rejects.toMatchObject({
      field: 'options.delayMs',
    })
    await expect(
      untyped.enqueueMany([
        { job: note, input: 1 },
        { job: note, input: 1, queue: 'nowhere' },
      ]),
    ).rejects.toMatchObject({ field: 'jobs[1].queue' })
    expect(await home.count()).toBe(0)
  })

  it('takes no jobs, one, and ten thousand with every option, in the order given', async () => {
    await using home = await open()
    const { app } = home
    const runAt = new Date('2030-05-06T07:08:09.010Z')

    expect(await app.enqueueMany([])).toEqual([])
    expect(await app.enqueueMany([{ job: note, input: 'one' }])).toHaveLength(1)
    const answers = await app.enqueueMany(
      Array.from({ length: 10_000 }, (_, i) => ({
        job: note,
        input: { i },
        queue: i % 2 === 0 ? 'mail' : 'default',
        priority: i % 10,
        maxAttempts: (i % 1000) + 1,
        runAt: new Date(runAt.getTime() + i),
        uniqueKey: `unique-${i}`,
        idempotencyKey: `call-${i}`,
      })),
    )

    expect(answers).toHaveLength(10_000)
    expect(new Set(answers.map(({ id }) => id)).size).toBe(10_000)
    expect(answers.every(({ status }) => status === 'created')).toBe(true)
    const [wrong] = await home.sql(
      `select count(*)::int4 as n from unnest($1::int8[]) with ordinality given (id, o) left join holdfast.job j using (id)
       where j.id is null or (j.input ->> 'i')::int8 <> o - 1 or j.priority <> (o - 1) % 10
         or j.max_attempts <> (o - 1) % 1000 + 1 or j.queue <> case when o % 2 = 1 then 'mail' else 'default' end
         or j.unique_key <> 'unique-' || (o - 1)
         or j.run_at <> timestamptz '2030-05-06T07:08:09.010Z' + (o - 1) * interval '1 millisecond'`,
      [answers.map(({ id }) => id)],
    )
    expect(wrong).toEqual({ n: 0 })
  })

  it('stores the same rows for jobs that are alike in all but their input, one by one, and among others', async () => {
    await using home = await open({ jobs: [order] })
    for (const options of [
      {},
      { priority: 9, maxAttempts: 1, queue: 'default' },
      { delayMs: 3_600_000 },
      { runAt: new Date('2999-01-01T09:00:00.123Z') },
      { runAt: new Date('2001-01-01T00:00:00Z') },
    ]) {
      const item = (orderId: string) => ({ job: order, input: { orderId }, ...options })
      const alike = await home.app.enqueueMany(['é"\\\'😀', 'b', 'c'].map(item))
      const [among] = await home.app.enqueueMany([item('é"\\\'😀'), { job: note, input: 1 }])
      const alone = await home.app.enqueue(order, { orderId: 'é"\\\'😀' }, options)

      const ids = [alike[0]?.id, among?.id, alone.id]
      expect(new Set(ids).size).toBe(3)
      const facts = await home.sql(
        `select name, queue, tenant, priority, max_attempts, unique_key, contract, context, input::text as input, run_at is null as at_once
         from holdfast.job where id = any ($1::int8[])`,
        [ids],
      )
      expect(facts).toHaveLength(3)
      expect(facts[1]).toEqual(facts[0])
      expect(facts[2]).toEqual(facts[0])
      const places = await home.sql(
        `select 'ready' as place, priority, attempts, crashes, care, queue, null as run_at, seq = job_id as in_order
           from holdfast.ready where job_id = any ($1::int8[])
         union all
         select 'scheduled', priority, attempts, crashes, null, queue, date_trunc('hour', run_at), retrying
           from holdfast.scheduled where job_id = any ($1::int8[])`,
        [ids],
      )
      expect(places).toHaveLength(3)
      expect(places[1]).toEqual(places[0])
      expect(places[2]).toEqual(places[0])
      const inputs = await home.sql(
        `select input ->> 'orderId' as id from holdfast.job where id = any ($1::int8[]) order by array_position($1::int8[], id)`,
        [alike.map(({ id }) => id)],
      )
      expect(inputs.map(({ id }) => id)).toEqual(['é"\\\'😀', 'b', 'c'])
    }
  })

  it('stores all of a bulk or nothing', async () => {
    await using home = await open()
    const jobs = Array.from({ length: 10_000 }, (_, i) => ({
      job: note,
      input: i,
      priority: i === 9_999 ? 10 : 0,
    }))

    await expect(home.app.enqueueMany(jobs)).rejects.toMatchObject({ field: 'jobs[9999].priority' })
    await expect(
      home.app.enqueueMany(Array.from({ length: 100_001 }, () => ({ job: note }))),
    ).rejects.toMatchObject({ field: 'jobs.length' })

    expect(await home.count()).toBe(0)
  })

  it('runs jobs of a bulk in the order given', async () => {
    const seen: unknown[] = []
    const record = defineJob({
      name: 'record',
      queue: 'mail',
      input: z.number(),
      idempotent: true,
      handler: (_ctx, n) => void seen.push(n),
    })
    await using home = await open({ jobs: [record], queues: { mail: { concurrency: 1 } } })
    const answers = await home.app.enqueueMany(
      Array.from({ length: 300 }, (_, i) => ({ job: record, input: i, priority: i < 150 ? 1 : 0 })),
    )

    await home.work()
    await Promise.all(answers.map(async ({ id }) => await home.app.job(id).wait({ timeoutMs: 20_000 })))

    const upTo = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i)
    expect(seen).toEqual([...upTo(150, 300), ...upTo(0, 150)])
  })

  it('is due at once when its instant has passed, and not before when it has not', async () => {
    await using home = await open()
    const past = await home.app.enqueue(note, 1, { runAt: new Date('1970-01-01') })
    const zero = await home.app.enqueue(note, 1, { delayMs: 0 })
    const soon = await home.app.enqueue(note, 1, { delayMs: 1 })
    const later = await home.app.enqueue(note, 1, { runAt: new Date(Date.now() + 3_600_000) })

    expect(await row(home, past.id)).toMatchObject([{ state: 'available' }])
    expect(await row(home, zero.id)).toMatchObject([{ state: 'available' }])
    expect(await row(home, later.id)).toMatchObject([{ state: 'scheduled' }])
    await home.work()
    for (const { id } of [past, zero, soon]) {
      expect(await home.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
    }
    expect(await row(home, later.id)).toMatchObject([{ state: 'scheduled' }])
  })

  it('gives a row per attempt its number, and the same id to each', async () => {
    const seen: { id: string; attempt: number; token: bigint }[] = []
    const twice = defineJob({
      name: 'twice',
      input: z.null(),
      idempotent: true,
      retry: { type: 'fixed', delayMs: 0 },
      handler: (ctx) => {
        seen.push({ id: ctx.job.id, attempt: ctx.job.attempt, token: ctx.job.fencingToken })
        if (ctx.job.attempt === 1) throw new Error('the answer of the provider was lost')
      },
    })
    await using home = await open({ jobs: [twice] })
    await home.work()

    const { id } = await home.app.enqueue(twice, null)
    const end = await home.app.job(id).wait({ timeoutMs: 20_000 })

    expect(end).toMatchObject({ state: 'completed', attempts: 2 })
    expect(seen).toMatchObject([
      { id, attempt: 1 },
      { id, attempt: 2 },
    ])
    expect((seen[1]?.token ?? 0n) > (seen[0]?.token ?? 0n)).toBe(true)
  })
})

describeEachHome('enqueueing by SQL', ({ open }) => {
  it('takes the defaults of the job, and gives what app.enqueue gives', async () => {
    await using home = await open({ jobs: [order] })
    await home.app.migrate()

    const answer = await enqueueBySql(home.sql, order.name, '{"orderId":"1"}')

    expect(answer).toEqual({ id: expect.stringMatching(/^[1-9]\d*$/), status: 'created' })
    const byApp = await home.app.enqueue(order, { orderId: '1' })
    const [one, two] = await home.sql(
      `select name, queue, priority, max_attempts, tenant, unique_key, contract, context, input::text, run_at
       from holdfast.job where id in ($1, $2) order by id`,
      [answer.id, byApp.id],
    )
    expect(one).toEqual(two)
  })

  it('keeps to unique and idempotency keys of the application, and both ways', async () => {
    await using home = await open()
    await home.app.migrate()
    const byApp = await home.app.enqueue(note, 1, { uniqueKey: 'a' })
    const bySql = await enqueueBySql(home.sql, note.name, '1', { unique_key: 'b', idempotency_key: 'call' })

    expect(await enqueueBySql(home.sql, note.name, '1', { unique_key: 'a' })).toEqual({
      id: byApp.id,
      status: 'existing',
    })
    expect(await home.app.enqueue(note, 1, { uniqueKey: 'b' })).toEqual({ id: bySql.id, status: 'existing' })
    expect(await home.app.enqueue(note, 1, { idempotencyKey: 'call' })).toEqual(bySql)
    expect(await home.count()).toBe(2)
  })

  it('commits and rolls back with the calling transaction, and runs', async () => {
    await using home = await open()
    await home.app.migrate()
    await home.work()

    const kept = await home.transaction(
      async ({ query }) => await enqueueBySql(query, note.name, '[1,{"a":2}]'),
    )
    const undone = home.transaction(async ({ query }) => {
      await enqueueBySql(query, note.name, '2')
      throw new Error('changed my mind')
    })

    await expect(undone).rejects.toThrow('changed my mind')
    expect(await home.app.job(kept.id).wait({ timeoutMs: 20_000 })).toMatchObject({
      state: 'completed',
      result: [1, { a: 2 }],
    })
    expect(await home.count()).toBe(1)
  })

  it('refuses a job that nobody has registered, by name', async () => {
    await using home = await open()
    await home.app.migrate()
    await expect(enqueueBySql(home.sql, 'nobody.knows', '1')).rejects.toMatchObject({ code: 'HF002' })
    expect(await home.count()).toBe(0)
  })

  it('refuses options out of range in the words of their field', async () => {
    await using home = await open()
    await home.app.migrate()
    const bad: [Record<string, string>, string][] = [
      [{ priority: '10' }, 'priority'],
      [{ priority: '-1' }, 'priority'],
      [{ max_attempts: '0' }, 'max_attempts'],
      [{ max_attempts: '1001' }, 'max_attempts'],
      [{ delay_ms: '-1' }, 'delay_ms'],
      [{ delay_ms: '1.5' }, 'delay_ms'],
      [{ delay_ms: 'NaN' }, 'delay_ms'],
      [{ delay_ms: 'Infinity' }, 'delay_ms'],
      [{ delay_ms: '1', run_at: '2030-01-01' }, 'delay_ms'],
      [{ run_at: 'infinity' }, 'run_at'],
      [{ run_at: '-infinity' }, 'run_at'],
      [{ run_at: '10000-01-01T00:00:00Z' }, 'run_at'],
      [{ queue: '' }, 'queue'],
      [{ queue: ' \u00a0' }, 'queue'],
      [{ queue: 'a\nb' }, 'queue'],
      [{ queue: 'x'.repeat(256) }, 'queue'],
      [{ unique_key: '' }, 'unique_key'],
      [{ unique_key: '\u3000' }, 'unique_key'],
      [{ unique_key: 'a\u0085b' }, 'unique_key'],
      [{ unique_key: 'a\u2028b' }, 'unique_key'],
      [{ unique_key: 'x'.repeat(1025) }, 'unique_key'],
      [{ idempotency_key: 'a\tb' }, 'idempotency_key'],
      [{ idempotency_key: '' }, 'idempotency_key'],
    ]
    for (const [options, field] of bad) {
      const refused = enqueueBySql(home.sql, note.name, '1', options)
      await expect(refused, JSON.stringify(options)).rejects.toMatchObject({
        code: 'HF001',
        message: expect.stringMatching(new RegExp(`^${field}: `)),
      })
    }
    await expect(enqueueBySql(home.sql, note.name, null)).rejects.toMatchObject({ code: 'HF001' })
    await expect(enqueueBySql(home.sql, note.name, `"${'x'.repeat(1024 * 1024)}"`)).rejects.toMatchObject({
      code: 'HF001',
    })
    expect(await home.count()).toBe(0)
  })
})

describeEachHome('a job', ({ open }) => {
  it('reads as scheduled, available, executing, completed, never as delivered', async () => {
    let release = (): void => {}
    const held = new Promise<void>((resolve) => {
      release = resolve
    })
    const slow = defineJob({
      name: 'slow',
      input: z.null(),
      idempotent: true,
      handler: async () => await held,
    })
    await using home = await open({ jobs: [slow] })
    const { id } = await home.app.enqueue(slow, null)
    expect(await home.app.job(id).get()).toMatchObject({
      state: 'available',
      workerId: null,
      finishedAt: null,
    })

    const started = new Promise((resolve) => home.app.events.on('attempt.started', resolve))
    await home.work()
    await started
    const executing = await home.app.job(id).get()
    expect(executing).toMatchObject({ state: 'executing', attempts: 1, finishedAt: null })
    expect(executing?.fencingToken).toMatch(/^\d+$/)

    release()
    expect(await home.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({
      state: 'completed',
      attempts: 1,
    })
  })

  it('is found by its id alone; an unknown or impossible id is told apart', async () => {
    await using home = await open()
    expect(await home.app.job('987654').get()).toBeUndefined()
    await expect(home.app.job(987654n).wait({ timeoutMs: 0 })).rejects.toMatchObject({
      code: 'JOB_NOT_FOUND',
    })
    for (const id of ['', '0', '-1', '1.5', 'x', '1;drop', '9223372036854775808', '99999999999999999999']) {
      expect(() => home.app.job(id), id).toThrow(InvalidArgumentError)
    }
    expect(await home.app.job('9223372036854775807').get()).toBeUndefined()
  })

  it('waits no longer than it was told', async () => {
    await using home = await open()
    const { id } = await home.app.enqueue(note, 1, { delayMs: 60_000 })
    expect(await home.app.job(id).wait({ timeoutMs: 0 })).toBeUndefined()
    expect(await home.app.job(id).wait({ timeoutMs: 50 })).toBeUndefined()
    expect(await home.app.job(id).wait({ signal: AbortSignal.abort() })).toBeUndefined()
  })

  it('enqueues from a handler, committed at once, whatever becomes of the attempt', async () => {
    await using home = await open()
    await home.work()
    let id = ''
    const failed = runInHandler(home, async (ctx) => {
      id = (await ctx.enqueue(note, 'child')).id
      throw new Error('failed afterwards')
    })
    await expect(failed).rejects.toThrow('failed afterwards')
    expect(await home.app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
  })
})

describe('a definition without "idempotent: true"', () => {
  const options = { name: 'x', input: z.null(), handler: () => {} }

  it.each([undefined, false, 'true', 1, null])('is refused when it says %j', (idempotent) => {
    expect(() => defineJob({ ...options, idempotent } as never)).toThrow(
      expect.objectContaining({ code: 'INVALID_ARGUMENT', field: 'idempotent' }),
    )
  })

  it('is refused by the application too, however it was made', () => {
    const forged = { ...note, idempotent: undefined } as unknown as typeof note
    expect(() => defineApp({ name: 'a', database: 'pglite:memory:', jobs: [forged] })).toThrow(
      /idempotent: true/,
    )
  })
})

describe('an unknown name', () => {
  it('is refused, never given a default: queue of a job, queue of a worker', () => {
    const astray = defineJob({
      name: 'x',
      queue: 'nowhere',
      input: z.null(),
      idempotent: true,
      handler: () => {},
    })
    expect(() => appOver('pglite:memory:', { jobs: [astray] })).toThrow(/"nowhere".*not configured/)
    const app = appOver('pglite:memory:')
    expect(() => app.worker({ queues: ['nowhere'] })).toThrow(/"nowhere"/)
    expect(() => app.worker({ queues: [] })).toThrow(InvalidArgumentError)
    expect(() => app.worker({ concurrency: { nowhere: 1 } })).toThrow(/"nowhere"/)
  })

  it('may be a name that every object has', () => {
    const queues = Object.fromEntries(['constructor', 'toString', '__proto__'].map((name) => [name, {}]))
    const app = appOver('pglite:memory:', { queues })
    expect([...app.composition.queues.keys()]).toEqual(expect.arrayContaining(['constructor', 'toString']))
    expect(() => app.worker({ concurrency: {} })).not.toThrow()
  })
})

describeEachHome('a changed declaration', ({ open }) => {
  it('with another queue, effects or result does not keep stored jobs from running', async () => {
    const ran: unknown[] = []
    const before = defineJob({ name: 'kept', input: anything(), idempotent: true, handler: () => {} })
    const after = defineJob({
      name: 'kept',
      queue: 'mail',
      input: anything(),
      result: anything(),
      effects: ['write:order'],
      idempotent: true,
      handler: (_, input) => void ran.push(input),
    })
    expect(after.contract).not.toBe(before.contract)
    await using home = await open({ jobs: [before] })
    const { id } = await home.app.enqueue(before, 'stored')
    const release = appOver(home.database, { jobs: [after] })
    try {
      await release.worker().start()
      expect(await release.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
    } finally {
      await release.close()
    }
    expect(ran).toEqual(['stored'])
  })
})

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { defineJob, type JobEnd, NotStorableError } from '../../src/index.ts'
import type { Job } from '../../src/jobs/define-job.ts'
import { anything, describeEachHome, doorsOf, enqueueBySql, type Home, note } from '../integration/homes.ts'

const NUL = '\0'
const HIGH = '\ud83d'
const LOW = '\ude00'

function cyclic(): unknown {
  const value: { list: unknown[] } = { list: [] }
  value.list.push({ back: value })
  return value
}

/** What no door accepts, and where the fault is. */
const refused: readonly (readonly [string, unknown, string])[] = [
  ['NUL', { a: `x${NUL}y` }, 'input.a'],
  ['a high surrogate alone', { a: HIGH }, 'input.a'],
  ['a low surrogate alone', { a: `${LOW}x` }, 'input.a'],
  ['surrogates the wrong way round', { a: LOW + HIGH }, 'input.a'],
  ['NUL in a name', { [`x${NUL}`]: 1 }, 'input["x\\u0000"]'],
  ['a surrogate in a name far below', [[{ deep: { [HIGH]: 1 } }]], 'input[0][0].deep["\\ud83d"]'],
  ['NUL as the input itself', NUL, 'input'],
  ['a BigInt', { a: 1n }, 'input.a'],
  ['NaN', { a: Number.NaN }, 'input.a'],
  ['Infinity', [Number.NEGATIVE_INFINITY], 'input[0]'],
  ['a function', { a: () => 1 }, 'input.a'],
  ['a symbol', { a: Symbol('s') }, 'input.a'],
  ['a Map', { a: new Map([[1, 2]]) }, 'input.a'],
  ['a Set', { 'a b': new Set([1]) }, 'input["a b"]'],
  ['an invalid Date', { a: new Date(Number.NaN) }, 'input.a'],
  ['undefined in a list', { a: [undefined] }, 'input.a[0]'],
  ['bytes', { a: new Uint8Array(2) }, 'input.a'],
  ['a cycle', cyclic(), 'input.list[0].back'],
  [
    'a getter that throws',
    {
      get a() {
        throw new Error('mine')
      },
    },
    'input',
  ],
]

/** What comes back equal, and of the same type. */
const kept: readonly unknown[] = [
  [],
  {},
  '',
  0,
  -0,
  false,
  null,
  true,
  [1, { a: 2 }],
  ['a'],
  'hello',
  [[]],
  [null],
  { a: '😀', b: 'ünïcode', c: '漢字' },
  { a: '\\u0000' },
  { a: '\\ud83d' },
  { '': 0, __proto_: 1, constructor: 'x', 'a.b': 1 },
  '{"json":"in text"}',
  'null',
  '"quoted"',
  "it's; drop table job --",
  '{1,2}',
  1e21,
  1.5e-7,
  Number.MAX_SAFE_INTEGER,
  'tab\tnewline\nreturn\rbell\u0007',
  { nested: { empty: {}, list: [[], [[]]] } },
]

const echo = defineJob({
  name: 'echo',
  input: anything(),
  idempotent: true,
  handler: (_ctx, input) => (input === undefined ? 'undefined' : input),
})

/** Rows 1 to 3; PAY-1, PAY-2, PAY-5. */
describeEachHome('an input', ({ kind, open }) => {
  let home: Home

  beforeAll(async () => {
    home = await open({ jobs: [echo] })
    await home.work()
  })

  afterAll(async () => {
    await home[Symbol.asyncDispose]()
  })

  describe.each(doorsOf(kind))('through $name', (door) => {
    it.each(refused)('is refused with %s, by its path', async (_, input, path) => {
      const call = door.enqueue(home, echo as unknown as Job, input, {
        uniqueKey: 'bad',
        idempotencyKey: 'bad',
      })
      await expect(call).rejects.toThrow(NotStorableError)
      await expect(call).rejects.toMatchObject({ code: 'NOT_STORABLE', path, changed: 'nothing' })
      expect(await home.sql(`select from holdfast.unique_key where key = 'bad'`)).toEqual([])
    })

    it('comes back equal and of the same type', async () => {
      const ends = await Promise.all(
        kept.map(async (input) => {
          const { id } = await door.enqueue(home, echo as unknown as Job, input)
          return await home.app.job(id).wait({ timeoutMs: 20_000 })
        }),
      )
      expect(ends.map((end) => end?.result)).toStrictEqual(kept)
    })

    it('changes by rule only: a Date is its ISO text, an undefined member is left out, no input is null', async () => {
      const results = await Promise.all(
        [{ a: undefined, b: 1 }, new Date('2026-01-01T00:00:00Z'), undefined].map(async (input) => {
          const { id } = await door.enqueue(home, echo as unknown as Job, input)
          return (await home.app.job(id).wait({ timeoutMs: 20_000 }))?.result
        }),
      )
      expect(results).toStrictEqual([{ b: 1 }, '2026-01-01T00:00:00.000Z', null])
    })
  })

  it("leaves the caller's transaction usable when it is refused", async () => {
    const tag = 'usable'
    await home.transaction(async ({ tx, query }) => {
      for (const [, input] of refused) {
        await expect(home.app.enqueue(echo, input, { tx })).rejects.toThrow(NotStorableError)
      }
      expect(await query('select 1 as alive')).toEqual([{ alive: 1 }])
      await home.app.enqueue(echo, tag, { tx })
    })
    expect(
      await home.sql('select from holdfast.job where input::text = $1', [JSON.stringify(tag)]),
    ).toHaveLength(1)
  })

  it.each([
    ['NUL', '{"a":"x\\u0000y"}'],
    ['NUL in a name', '{"\\u0000":1}'],
    ['NUL after an escaped backslash', '["\\\\\\u0000"]'],
    ['a high surrogate alone', '{"a":"\\ud83d"}'],
    ['a high surrogate before text', '{"a":"\\uD83Dx"}'],
    ['a low surrogate alone', '{"a":"\\ude00x"}'],
    ['a low surrogate in a name', '{"\\uDE00":1}'],
    ['a pair that a backslash parts', '["\\ud83d\\\\\\ude00"]'],
    ['two high ones', '["\\ud83d\\ud83d\\ude00"]'],
  ])('by SQL is refused with %s too', async (_, json) => {
    await expect(enqueueBySql(home.sql, echo.name, json)).rejects.toMatchObject({
      code: 'HF001',
      message: expect.stringMatching(/^input: /),
    })
  })

  it.each([
    '"\\\\u0000"',
    '"\\\\ud83d"',
    '"\\ud83d\\ude00"',
    '"\\uD83D\\uDE00"',
    '{"a":"\\\\\\\\u0000"}',
    '"\\u0001\\u00e9"',
    '"😀"',
    'null',
    '[]',
    '""',
    '0',
  ])('by SQL comes back as it is: %s', async (json) => {
    const { id } = await enqueueBySql(home.sql, echo.name, json)
    const end = await home.app.job(id).wait({ timeoutMs: 20_000 })
    // As a value: PostgreSQL may write the escapes of a text that is the whole input in another way.
    expect(end?.result).toStrictEqual(JSON.parse(json))
  })

  it('keeps the digits, the order and the repetition of members that SQL gave it', async () => {
    const json = '{"id": 12345678901234567890, "z":1.10, "a":1e400, "a":2, "big":9007199254740993}'
    const { id } = await enqueueBySql(home.sql, note.name, json, { delay_ms: '1000000' })
    expect(await home.sql('select input::text from holdfast.job where id = $1', [id])).toEqual([
      { input: json },
    ])
  })

  it('is checked as a whole: nothing of a bulk is stored for the sake of one', async () => {
    const before = await home.count()
    const jobs = Array.from({ length: 50 }, (_, i) => ({ job: echo, input: i === 49 ? { bad: [1n] } : i }))
    await expect(home.app.enqueueMany(jobs)).rejects.toMatchObject({
      path: expect.stringContaining('input.bad[0]'),
    })
    expect(await home.count()).toBe(before)
  })
})

/** Rows 4 and 5; PAY-3, PAY-4, PAY-6, PAY-7. */
describeEachHome('whatever a handler gives', ({ open }) => {
  let home: Home
  const acts = new Map<string, () => unknown>()
  const runs = new Map<string, number>()
  const act = defineJob({
    name: 'act',
    input: anything<string>(),
    idempotent: true,
    maxAttempts: 1,
    retry: { type: 'fixed', delayMs: 0 },
    handler: (_ctx, name) => {
      runs.set(name, (runs.get(name) ?? 0) + 1)
      return acts.get(name)?.()
    },
  })

  beforeAll(async () => {
    home = await open({ jobs: [act] })
    await home.work()
  })

  afterAll(async () => {
    await home[Symbol.asyncDispose]()
  })

  const run = async (name: string, work: () => unknown, maxAttempts = 1): Promise<JobEnd | undefined> => {
    acts.set(name, work)
    runs.set(name, 0)
    const { id } = await home.app.enqueue(act, name, { maxAttempts })
    const end = await home.app.job(id).wait({ timeoutMs: 20_000 })
    expect(runs.get(name), 'number of runs').toBeLessThanOrEqual(maxAttempts)
    return end
  }

  const results: readonly (readonly [string, unknown, unknown])[] = [
    ['a BigInt', { n: 10n }, { n: '10' }],
    ['NaN', Number.NaN, 'NaN'],
    ['NUL', { a: `x${NUL}y` }, { a: 'x\ufffdy' }],
    ['half a surrogate pair', HIGH, '\ufffd'],
    ['a NUL name', { [NUL]: 1 }, { '\ufffd': 1 }],
    ['a function', () => 1, null],
    ['a symbol', Symbol('s'), null],
    ['a Map', new Map(), '[Map]'],
  ]

  it.each(results)(
    'completes once with a result that cannot be stored as it is: %s',
    async (name, value, stored) => {
      for (const maxAttempts of [1, 3]) {
        const end = await run(`result ${name} ${maxAttempts}`, () => value, maxAttempts)
        expect(end).toMatchObject({ state: 'completed', attempts: 1 })
        expect(end?.result).toStrictEqual(stored)
        expect(runs.get(`result ${name} ${maxAttempts}`)).toBe(1)
      }
    },
  )

  it('completes once with a cycle, a toJSON that throws, a proxy that is revoked, and one larger than allowed', async () => {
    const { proxy, revoke } = Proxy.revocable({}, {})
    revoke()
    const thrower = {
      toJSON() {
        throw new Error('mine')
      },
    }
    for (const [name, value] of Object.entries({
      cycle: cyclic(),
      thrower,
      nested: { proxy },
      large: 'x'.repeat(2_000_000),
    })) {
      const end = await run(name, () => value, 3)
      expect(end, name).toMatchObject({ state: 'completed', attempts: 1 })
    }
    expect(await run('next', () => 'fine')).toMatchObject({ result: 'fine' })
  })

  it('gives back every JSON value as the result, and null for none', async () => {
    const ends = await Promise.all(kept.map(async (value, i) => await run(`kept ${i}`, () => value)))
    expect(ends.map((end) => end?.result)).toStrictEqual(kept)
    expect((await run('none', () => undefined))?.result).toBeNull()
  })

  const self = new Error('cycle')
  self.cause = self
  const response: Record<string, unknown> = { status: 500 }
  const http = Object.assign(new Error('request failed'), { code: 'ECONN', response, request: { response } })
  response['request'] = http.request
  const nasty = new Proxy(new Error('hidden'), {
    get: () => {
      throw new Error('no reading')
    },
    getPrototypeOf: () => {
      throw new Error('no looking')
    },
  })
  const revoked = Proxy.revocable({}, {})
  revoked.revoke()

  it.each([
    ['a text', 'boom', /boom/],
    ['an empty text', '', /./],
    ['an object', { code: 7 }, /7/],
    ['an error that causes itself', self, /cycle/],
    ['an error of an HTTP client', http, /request failed/],
    ['an error without a message', new TypeError(), /TypeError/],
    ['undefined', undefined, /undefined/],
    ['null', null, /null/],
    ['a number', 42, /42/],
    ['a BigInt', 10n, /10/],
    ['a symbol', Symbol('s'), /symbol/],
    ['a function', () => 1, /function/],
    ['a proxy that refuses everything', nasty, /./],
    ['a revoked proxy', revoked.proxy, /./],
    ['NUL and half a pair', new Error(`a${NUL}b${HIGH}`), /a.b/],
    ['an object without prototype', Object.create(null), /./],
    ['a number as message', { message: 12 }, /12/],
  ])('counts as one failed attempt with a text when %s is thrown', async (name, thrown, text) => {
    const end = await run(
      `throw ${name}`,
      () => {
        throw thrown
      },
      2,
    )
    expect(end).toMatchObject({ state: 'discarded', attempts: 2, reason: 'no attempts left' })
    expect(runs.get(`throw ${name}`)).toBe(2)
    const [job] = await home.sql<{ id: string; error: { message: string; name: string } }>(
      `select j.id::text, o.error from holdfast.job j join holdfast.outcome o on o.job_id = j.id where j.input::text = $1`,
      [JSON.stringify(`throw ${name}`)],
    )
    expect(`${job?.error.name} ${job?.error.message}`).toMatch(text)
    expect(job?.error.message.trim()).not.toBe('')
    expect(
      await home.sql('select attempt, ended::text from holdfast.attempt where job_id = $1', [job?.id]),
    ).toEqual([{ attempt: 1, ended: 'failed' }])
  })

  it('counts a rejection like a throw', async () => {
    // biome-ignore lint: whatever is thrown
    expect(await run('rejected', async () => await Promise.reject('boom'), 1)).toMatchObject({
      state: 'discarded',
    })
  })

  /** Row 6. */
  it('keeps errors to their size: five megabytes of text, ten thousand causes', async () => {
    let chain: Error = new Error('innermost')
    for (let depth = 0; depth < 10_000; depth += 1) chain = new Error(`depth ${depth}`, { cause: chain })
    const large = new Error('é'.repeat(5_000_000))
    for (const [name, thrown] of [
      ['large', large],
      ['chain', chain],
    ] as const) {
      const end = await run(
        name,
        () => {
          throw thrown
        },
        3,
      )
      expect(end).toMatchObject({ state: 'discarded', attempts: 3 })
    }
    const sizes = await home.sql<{ bytes: number }>(
      `select octet_length(error::text) as bytes from holdfast.outcome where error is not null
       union all select octet_length(error::text) from holdfast.attempt where error is not null`,
    )
    expect(sizes.length).toBeGreaterThanOrEqual(6)
    expect(Math.max(...sizes.map(({ bytes }) => bytes))).toBeLessThanOrEqual(16 * 1024)
  })

  it('keeps a reason to its size, in well-formed text', async () => {
    const loud = defineReasons()
    await using other = await open({ jobs: [loud] })
    await other.work()
    const { id } = await other.app.enqueue(loud, '😀'.repeat(5000))
    const end = await other.app.job(id).wait({ timeoutMs: 20_000 })
    expect(end?.state).toBe('discarded')
    expect(Buffer.byteLength(end?.reason ?? '')).toBeLessThanOrEqual(1024)
    expect(end?.reason).toMatch(/^(?:😀)+$/u)
    const odd = await other.app.enqueue(loud, 'nul')
    expect((await other.app.job(odd.id).wait({ timeoutMs: 20_000 }))?.reason).toBe('a\ufffdb')
  })
})

function defineReasons() {
  return defineJob({
    name: 'loud',
    input: anything<string>(),
    idempotent: true,
    handler: (ctx, reason) => ctx.discard(reason === 'nul' ? `a${NUL}b` : reason),
  })
}

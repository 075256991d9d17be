import { afterAll, beforeAll, expect, it } from 'vitest'
import {
  type App,
  ScriptAbortedError,
  ScriptError,
  ScriptSyntaxError,
  ScriptThrownError,
} from '../../../src/index.ts'
import { describeEachApp, type EachApp } from '../effects/each-app.ts'

type Kind = abstract new (...args: never[]) => Error

const mistakes: readonly (readonly [script: string, kind: Kind, facts: object])[] = [
  ['return é', ScriptSyntaxError, { line: 1, column: 8 }],
  ['let a = 1\r\n\treturn "😀" $', ScriptSyntaxError, { line: 2, column: 13 }],
  ['let a = 1\nreturn a +\n  null', ScriptError, { reason: 'operand-type', line: 2 }],
  ['let a = 1 /\n\n 0', ScriptError, { reason: 'division-by-zero', line: 1 }],
  ['let a = 9223372036854775807\nlet b = a\n+ a', ScriptError, { reason: 'overflow', line: 3 }],
  ['for i in 1..3 do\n  if i == 2 then\n    throw i\n  end\nend', ScriptThrownError, { text: '2', line: 3 }],
  ['begin\nset k 1\nrollback\nend', ScriptAbortedError, { reason: 'rollback', line: 3 }],
  ['begin\nset k 1\nend', ScriptAbortedError, { reason: 'no-commit', line: 2 }],
  ['set k 1\nset @missing 2', ScriptError, { reason: 'undefined-parameter', line: 2 }],
  ['set k 1\nsleep 10000', ScriptAbortedError, { reason: 'timeout', line: 2 }],
  ['set k 1\nset k 2 ex 99999999999', ScriptError, { reason: 'invalid-input', line: 2 }],
  [
    `let i = 0
for i in 1..2000000 do if false then ${'let j = i '.repeat(3000)} end end`,
    ScriptError,
    { reason: 'too-many-steps', line: 2 },
  ],
  [
    'let s = "0123456789abcdef"\nfor i in 1..40 do let s = concat(s, s) end',
    ScriptError,
    { reason: 'too-large' },
  ],
  ['let a = 1..200000\nreturn a', ScriptError, { reason: 'too-large', line: 2 }],
  ['let a = [1, 2]\nset k a', ScriptError, { reason: 'array-not-storable', line: 2 }],
]

describeEachApp('app.script', ({ open }) => {
  let opened: EachApp
  let app: App
  beforeAll(async () => {
    opened = await open({ worker: false, jobs: [] })
    app = opened.app
  })
  afterAll(async () => await opened[Symbol.asyncDispose]())

  const text = async (script: string, params?: object, options?: object) =>
    (await app.script(script, params as never, options)).text()
  const failure = async (script: string, params?: object, options?: object): Promise<unknown> =>
    await app.script(script, params as never, options).then(
      (result) => result,
      (error: unknown) => error,
    )

  it('gives what the last statement came to, with revision, expiry and times', async () => {
    const before = Date.now()
    await app.script("set greeting 'hello' ex 60000")
    const result = await app.script('get greeting')

    expect(result).toMatchObject({ type: 'get', revision: 0n })
    expect(result.text()).toBe('hello')
    const [value] = result.values
    expect(value?.key).toBe('greeting')
    expect(Number(value?.expiresAt)).toBeGreaterThan(before + 50_000)
    expect(Number(value?.modifiedAt)).toBeGreaterThan(before - 60_000)
    expect(result.elapsedMs).toBeGreaterThan(0)
    expect(await app.script('if false then sleep 1 end')).toMatchObject({ type: 'none', value: null })
  })

  it('reads its values as text, JSON, integers and booleans, and refuses what is none', async () => {
    expect((await app.script('return to_json("é")')).json()).toBe('é')
    expect((await app.script('return 9007199254740993')).integer()).toBe(9007199254740993n)
    expect((await app.script('return 1 == 1')).boolean()).toBe(true)
    expect((await app.script('get nothing')).integer()).toBeNull()
    const word = await app.script("return 'word'")
    for (const read of ['json', 'integer', 'boolean'] as const)
      expect(() => word[read]()).toThrow(expect.objectContaining({ code: 'SCRIPT_VALUE' }))
  })

  it('gives the items of a listing with their keys, also through a variable', async () => {
    await app.script("set `box/1` 'one' set `box/2` 'two' norev set `box/deep/3` 'three'")
    for (const script of [
      'get by bucket box',
      'let xs = get by bucket box return xs',
      'return get by bucket box',
    ]) {
      const { values } = await app.script(script)
      expect(values.map(({ key, value }) => [key, Buffer.from(value).toString()])).toEqual([
        ['box/1', 'one'],
        ['box/2', 'two'],
      ])
      expect(values.every(({ modifiedAt }) => modifiedAt instanceof Date)).toBe(true)
    }
  })

  it('takes parameters by name, with or without "@", as text, and as keys whatever is in them', async () => {
    expect(await text('return @n + 1', { n: 41 })).toBe('42')
    expect(await text('return @n + 1', { '@n': 41n })).toBe('42')
    expect(await text('return concat(@a, @b)', { a: 1e21, b: true })).toBe('1E+21true')
    for (const key of ['a"b\\c{},', "'", 'null', 'NULL', ' ', 'ключ/😀', '%_'])
      expect(await text('set @k 1 let n = get @k set @k n + 1 return get @k', { k: key })).toBe('2')
  })

  it.each([
    [{ 'a b': '1' }, 'params.a b'],
    [{ a: null }, 'params.a'],
    [{ a: {} }, 'params.a'],
    [{ a: 'x\0' }, 'params.a'],
    [{ a: '\ud800' }, 'params.a'],
    [{ a: '1', '@a': '2' }, 'params.@a'],
  ])('refuses the parameters %j', async (params, field) => {
    expect(await failure('return 1', params)).toMatchObject({ code: 'INVALID_ARGUMENT', field })
  })

  it.each([
    [{ lockWaitMs: -1 }, 'lockWaitMs'],
    [{ timeoutMs: 0 }, 'timeoutMs'],
    [{ timeoutMs: 300_001 }, 'timeoutMs'],
    [{ tenant: 'a\nb' }, 'tenant'],
  ])('refuses the options %j', async (options, field) => {
    expect(await failure('return 1', {}, options)).toMatchObject({ code: 'INVALID_ARGUMENT', field })
  })

  it('keeps tenants apart', async () => {
    await app.script('set shared 1', {}, { tenant: 'one' })
    expect(await app.script('get shared', {}, { tenant: 'two' })).toMatchObject({ type: 'doesnotexist' })
    expect(await app.script('get shared')).toMatchObject({ type: 'doesnotexist' })
  })

  it('passes bytes on as the answer, and refuses to work with those that are no text', async () => {
    await opened.sql(
      `select holdfast.key_set('', false, 'raw', '\\xff00', null, false, false, null, null, false)`,
    )
    expect((await app.script('get raw')).value).toEqual(new Uint8Array([255, 0]))
    expect(await failure('set other 1\nlet x = get raw')).toMatchObject({ reason: 'not-text', line: 2 })
    expect(await failure('let xs = scan by prefix ra')).toMatchObject({ reason: 'not-text', line: 1 })
    expect(await app.script('get other')).toMatchObject({ type: 'doesnotexist' })
  })

  it.each(mistakes.map(([script, kind, facts]) => ({ title: script.slice(0, 40), script, kind, facts })))(
    'tells the kind and line of the mistake in $title, and undoes all',
    async ({ script, kind, facts }) => {
      const error = await failure(script)
      expect(error).toBeInstanceOf(kind)
      expect(error).toMatchObject(facts)
      expect(await app.script('get k')).toMatchObject({ type: 'doesnotexist' })
    },
  )

  it('shows the line of a syntax error with a mark under the place', async () => {
    expect(await failure('let a = 1\n\tset k $')).toMatchObject({
      message: 'line 2, column 8: unexpected character "$"\n  \tset k $\n  \t      ^',
    })
  })

  it('ends what would not end by its timeout, and a sleep that would pass it at once', async () => {
    const error = await failure(
      'for i in 1..300000 do for j in 1..300000 do sleep 1 end end',
      {},
      { timeoutMs: 50 },
    )
    expect(error).toMatchObject({ code: 'SCRIPT_ABORTED', reason: 'timeout' })
  })

  it.each([
    ['brackets', (n: number) => `return ${'('.repeat(n)}1${')'.repeat(n)}`],
    ['negations', (n: number) => `return ${'not '.repeat(n)}true`],
    ['blocks', (n: number) => `${'if true then '.repeat(n)}return 1${' end'.repeat(n)}`],
    ['calls', (n: number) => `return ${'abs('.repeat(n)}1${')'.repeat(n)}`],
    ['reads', (n: number) => `return ${'get k at '.repeat(n)}1`],
    ['indexes', (n: number) => `let a = [0] return ${'a['.repeat(n)}0${']'.repeat(n)}`],
  ])('takes 200 %s in one another, and refuses 201 and 50,000', async (_, make) => {
    expect(await failure(make(200))).not.toBeInstanceOf(ScriptSyntaxError)
    for (const count of [201, 50_000]) expect(await failure(make(count))).toBeInstanceOf(ScriptSyntaxError)
  })

  it('takes a script of 1 MiB, and refuses a longer one', async () => {
    const script = `return '${'x'.repeat(1024 * 1024 - 9)}'`
    expect((await app.script(script)).value).toHaveLength(1024 * 1024 - 9)
    expect(await failure(`${script} `)).toMatchObject({ code: 'INVALID_ARGUMENT', field: 'script' })
  })

  it('keeps a listing as it was while it goes over it, and frees what is not used any more', async () => {
    const script = `let all = get by bucket box
      let n = 0
      for round in 1..3000 do
        let again = [round, round, round, round, round, round, round, round, round, round, round, round, round, round, round, round, round, round, round, round]
        let n = n + count(again)
      end
      for x in all do let all = [x] let n = n + 1 end
      return n`
    expect(await text(script)).toBe('60002')
  })

  it('is part of the transaction that it is given, which stays usable when the script fails', async () => {
    await app.transaction(async (tx) => {
      await app.script('set inside 1', {}, { tx })
      expect(await failure('set inside 2 set inside2 1 throw 1', {}, { tx })).toBeInstanceOf(
        ScriptThrownError,
      )
      expect(await failure('set inside 2 return 1 / 0', {}, { tx })).toBeInstanceOf(ScriptError)
      expect(await text('return get inside', {}, { tx })).toBe('1')
      const { rows } = await tx.query<{ wait: string }>(`select current_setting('lock_timeout') as wait`)
      expect(rows).toEqual([{ wait: '0' }])
    })
    expect(await text('return get inside')).toBe('1')
    expect(await app.script('get inside2')).toMatchObject({ type: 'doesnotexist' })
    await app
      .transaction(async (tx) => {
        await app.script('set inside 3', {}, { tx })
        throw new Error('rolled back')
      })
      .catch(() => undefined)
    expect(await text('return get inside')).toBe('1')
    const inTransaction = app.transaction(async () => await app.script('get inside'))
    await expect(inTransaction).rejects.toMatchObject({ code: 'OUTSIDE_TRANSACTION' })
  })

  it('leaves no trace of keys that it locked and did not write', async () => {
    await app.script(
      'let a = get ghost1 let b = eget ghost2 if a == 1 then set ghost3 1 end let c = get by bucket ghost',
    )
    const rows = await opened.sql(
      `select key from holdfast.key_value where revision < 0
        union all select key from holdfast.ephemeral_key_value where revision < 0`,
    )
    expect(rows).toEqual([])
  })

  it('looks at its signal before it is sent', async () => {
    const error = await failure('set aborted 1', {}, { signal: AbortSignal.abort(new Error('no')) })
    expect(error).toMatchObject({ message: 'no' })
    expect(await app.script('get aborted')).toMatchObject({ type: 'doesnotexist' })
  })

  it('reads its own writes, in listings too', async () => {
    const script = 'set `own/a` 1 set `own/b` 2 delete `own/a` let xs = get by bucket own return xs[0]'
    expect(await text(script)).toBe('2')
  })
})

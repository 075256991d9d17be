import { afterAll, beforeAll, expect, it } from 'vitest'
import { type Keys, KeyValueError } from '../../../src/index.ts'
import { describeEachApp, type EachApp } from '../effects/each-app.ts'

describeEachApp('keys', ({ open }) => {
  let opened: EachApp
  let keys: Keys
  beforeAll(async () => {
    opened = await open({ jobs: [], worker: false })
    keys = opened.app.keys
  })
  afterAll(async () => await opened[Symbol.asyncDispose]())

  /** Has a live key expire as if its time had passed. */
  const expire = async (key: string, durability = 'persistent') =>
    await opened.sql(
      `update holdfast.${durability === 'ephemeral' ? 'ephemeral_' : ''}key_value set expires_at = clock_timestamp() where key = $1`,
      [key],
    )

  for (const durability of ['persistent', 'ephemeral'] as const) {
    const o = { durability }

    it(`sets, reads and deletes ${durability} keys with revisions that go on over deletion and expiry`, async () => {
      const key = 'revisions/a'
      const first = await keys.set(key, 'one', o)
      const read = await keys.get(key, o)
      const second = await keys.set(key, new Uint8Array([0, 255, 128]), o)
      const bytes = await keys.get(key, o)
      const deleted = await keys.delete(key, o)
      const again = await keys.delete(key, o)
      const third = await keys.set(key, 'three', { ...o, ttlMs: 60_000 })
      await expire(key, durability)
      const expired = await keys.get(key, o)
      const missed = await keys.delete(key, o)
      const fourth = await keys.set(key, '', o)

      expect(first).toMatchObject({ ok: true, revision: 0n, expiresAt: null, modifiedAt: expect.any(Date) })
      expect(read).toMatchObject({ key, revision: 0n, expiresAt: null })
      expect(read?.text()).toBe('one')
      expect(second).toMatchObject({ ok: true, revision: 1n })
      expect([...(bytes?.value ?? [])]).toEqual([0, 255, 128])
      expect(deleted).toEqual({ ok: true, revision: 2n })
      expect(again).toEqual({ ok: false, revision: 2n })
      expect(third).toMatchObject({ ok: true, revision: 3n, expiresAt: expect.any(Date) })
      expect(expired).toBeUndefined()
      expect(missed).toEqual({ ok: false, revision: 3n })
      expect(fourth).toMatchObject({ ok: true, revision: 4n, expiresAt: null })
      expect((await keys.get(key, o))?.value.length).toBe(0)
    })

    it(`sets ${durability} keys only if all conditions hold, and refuses with what the next try needs`, async () => {
      const key = 'conditions/a'
      const never = await keys.set(key, 'x', { ...o, ifRevision: 0n })
      const missing = await keys.set(key, 'x', { ...o, ifValue: '' })
      const absent = await keys.set(key, 'x', { ...o, ifPresent: true })
      const created = await keys.set(key, 'x', { ...o, ifRevision: -1n, ifAbsent: true })
      const taken = await keys.set(key, 'y', { ...o, ifAbsent: true })
      const other = await keys.set(key, 'y', { ...o, ifValue: 'z' })
      const both = await keys.set(key, 'y', { ...o, ifValue: 'x', ifRevision: 7n })
      const neither = await keys.set(key, 'y', { ...o, ifAbsent: true, ifPresent: true })
      const fits = await keys.set(key, 'y', { ...o, ifValue: 'x', ifRevision: 0n, ifPresent: true })
      await keys.delete(key, o)
      const tombstone = await keys.set(key, 'z', { ...o, ifRevision: 1n })
      const back = tombstone.ok
        ? tombstone
        : await keys.set(key, 'z', { ...o, ifRevision: tombstone.revision })
      const wrongDelete = await keys.delete(key, { ...o, ifRevision: 0n })
      const rightDelete = await keys.delete(key, { ...o, ifValue: 'z', ifRevision: 3n })

      expect(never).toEqual({ ok: false, revision: -1n, current: undefined })
      expect(missing).toEqual({ ok: false, revision: -1n, current: undefined })
      expect(absent).toMatchObject({ ok: false, revision: -1n })
      expect(created).toMatchObject({ ok: true, revision: 0n })
      expect(taken).toMatchObject({ ok: false, revision: 0n })
      expect(!taken.ok && taken.current?.text()).toBe('x')
      expect([other.ok, both.ok, neither.ok]).toEqual([false, false, false])
      expect(fits).toMatchObject({ ok: true, revision: 1n })
      expect(tombstone).toEqual({ ok: false, revision: 2n, current: undefined })
      expect(back).toMatchObject({ ok: true, revision: 3n })
      expect(wrongDelete).toEqual({ ok: false, revision: 3n })
      expect(rightDelete).toEqual({ ok: true, revision: 4n })
    })

    it(`reads old revisions and times of ${durability} keys, without values of norev`, async () => {
      const key = 'history/a'
      await keys.set(key, 'zero', o)
      await keys.set(key, 'one', { ...o, norev: true })
      const current = await keys.get(key, { ...o, atRevision: 1n })
      await keys.set(key, 'two', o)
      const two = await keys.get(key, o)
      await keys.delete(key, o)
      const modifiedAt = two?.modifiedAt as Date

      const at = async (revision: bigint) => (await keys.get(key, { ...o, atRevision: revision }))?.text()
      expect(current?.text()).toBe('one')
      expect([await at(0n), await at(1n), await at(2n), await at(3n), await at(9n)]).toEqual([
        'zero',
        undefined,
        'two',
        undefined,
        undefined,
      ])
      expect(await keys.get(key, { ...o, asOf: new Date(0) })).toBeUndefined()
      expect((await keys.get(key, { ...o, asOf: new Date(modifiedAt.getTime() - 1) }))?.text()).not.toBe(
        'one',
      )
      expect((await keys.revisions(key, o)).map(({ revision, entry }) => [revision, entry?.text()])).toEqual([
        [3n, undefined],
        [2n, 'two'],
        [0n, 'zero'],
      ])
      expect(
        (await keys.revisions(key, { ...o, limit: 1, before: 3n })).map(({ revision }) => revision),
      ).toEqual([2n])
    })

    it(`extends and persists live ${durability} keys only, without a new revision`, async () => {
      const key = 'extend/a'
      const missing = await keys.extend(key, 1000, o)
      await keys.set(key, 'x', { ...o, ttlMs: 1000 })
      const extended = await keys.extend(key, 90_000, o)
      const persisted = await keys.persist(key, o)
      const entry = await keys.get(key, o)
      await keys.extend(key, 90_000, o)
      await expire(key, durability)
      const late = await keys.extend(key, 90_000, o)

      expect(missing).toEqual({ ok: false, revision: -1n, expiresAt: null })
      expect(extended).toMatchObject({ ok: true, revision: 0n })
      expect(extended.expiresAt?.getTime()).toBeGreaterThan((entry?.modifiedAt.getTime() ?? 0) + 80_000)
      expect(persisted).toEqual({ ok: true, revision: 0n, expiresAt: null })
      expect(entry?.expiresAt).toBeNull()
      expect(late).toEqual({ ok: false, revision: 0n, expiresAt: null })
    })

    it(`handles many ${durability} keys at once, each with its own answer, in the order given`, async () => {
      const answers = await keys.setMany(
        [
          { key: 'many/b', value: '1' },
          { key: 'many/a', value: '2', ifPresent: true },
          { key: 'many/c"\\{}', value: new Uint8Array([1]), ttlMs: 60_000 },
          { key: 'many/b', value: '3', ifRevision: 0n },
        ],
        o,
      )
      const read = await keys.getMany(['many/c"\\{}', 'many/a', 'many/b', 'many/b'], o)
      const deleted = await keys.deleteMany(['many/x', 'many/b', { key: 'many/c"\\{}', ifRevision: 5n }], o)

      expect(answers.map(({ ok, revision }) => [ok, revision])).toEqual([
        [true, 0n],
        [false, -1n],
        [true, 0n],
        [true, 1n],
      ])
      expect(read.map((entry) => entry?.text())).toEqual(['\u0001', undefined, '3', '3'])
      expect(deleted).toEqual([
        { ok: false, revision: -1n },
        { ok: true, revision: 2n },
        { ok: false, revision: 0n },
      ])
      expect(await keys.setMany([], o)).toEqual([])
      expect(await keys.getMany([], o)).toEqual([])
    })
  }

  it('keeps persistent and ephemeral keys, and those of tenants, apart', async () => {
    await keys.set('apart', 'nobody')
    await keys.set('apart', 'a', { tenant: 'a' })
    await keys.set('apart', 'ephemeral', { durability: 'ephemeral' })

    expect((await keys.get('apart'))?.text()).toBe('nobody')
    expect((await keys.get('apart', { tenant: 'a' }))?.text()).toBe('a')
    expect(await keys.get('apart', { tenant: 'b' })).toBeUndefined()
    expect((await keys.get('apart', { durability: 'ephemeral' }))?.text()).toBe('ephemeral')
    expect((await keys.list({ prefix: 'apart', tenant: 'a' })).entries.map((entry) => entry.text())).toEqual([
      'a',
    ])
  })

  it('lists buckets, prefixes and ranges in byte order, taking every character literally', async () => {
    const tenant = 'listing'
    const all = [
      'a_b',
      'aXb',
      'a%b',
      'a\\b',
      'b/1',
      'b/2',
      'b/2/x',
      'b0',
      'b',
      'é/1',
      '\u{ffff}x',
      '\u{10000}x',
      '/root',
    ]
    await keys.setMany(
      all.map((key) => ({ key, value: key })),
      { tenant },
    )
    const list = async (options: Parameters<Keys['list']>[0]) =>
      (await keys.list({ ...options, tenant })).entries.map(({ key }) => key)

    expect(await list({ prefix: '' })).toEqual(
      [...all].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b))),
    )
    expect(await list({ prefix: 'a_' })).toEqual(['a_b'])
    expect(await list({ prefix: 'a%' })).toEqual(['a%b'])
    expect(await list({ prefix: 'a\\' })).toEqual(['a\\b'])
    expect(await list({ bucket: 'b' })).toEqual(['b/1', 'b/2'])
    expect(await list({ bucket: 'b/2' })).toEqual(['b/2/x'])
    expect(await list({ bucket: 'é' })).toEqual(['é/1'])
    expect(await list({ bucket: '' })).toEqual(['/root'])
    expect(await list({ range: { start: 'b', end: 'b0' } })).toEqual(['b', 'b/1', 'b/2', 'b/2/x'])
    expect(
      await list({
        range: { prefix: 'b', start: 'b', startInclusive: false, end: 'b0', endInclusive: true },
      }),
    ).toEqual(['b/1', 'b/2', 'b/2/x', 'b0'])
    expect(await list({ range: { prefix: '\u{ffff}' } })).toEqual(['\u{ffff}x'])
  })

  it('pages over the keys of the moment of the first page', async () => {
    const tenant = 'pages'
    const names = Array.from({ length: 7 }, (_, index) => `p/${index}`)
    await keys.setMany(
      names.map((key) => ({ key, value: 'old' })),
      { tenant },
    )
    await keys.set('p/6', 'norev', { tenant, norev: true })
    const first = await keys.list({ prefix: 'p/', limit: 3, tenant })
    await keys.set('p/3', 'new', { tenant })
    await keys.delete('p/4', { tenant })
    await keys.set('p/31', 'new', { tenant })
    const rest: [string, string][] = []
    for (let cursor = first.cursor; cursor !== null; ) {
      const page = await keys.list({ prefix: 'p/', limit: 3, tenant, cursor })
      rest.push(...page.entries.map((entry) => [entry.key, entry.text()] as [string, string]))
      cursor = page.cursor
    }
    const all: string[] = []
    for await (const entry of keys.all({ prefix: 'p/', limit: 2, tenant })) all.push(entry.key)

    expect(first.entries.map(({ key }) => key)).toEqual(['p/0', 'p/1', 'p/2'])
    expect(rest).toEqual([
      ['p/3', 'old'],
      ['p/4', 'old'],
      ['p/5', 'old'],
      ['p/6', 'norev'],
    ])
    expect(all).toEqual(['p/0', 'p/1', 'p/2', 'p/3', 'p/31', 'p/5', 'p/6'])
    await expect(keys.list({ prefix: 'q/', cursor: first.cursor as string, tenant })).rejects.toMatchObject({
      code: 'INVALID_ARGUMENT',
      field: 'cursor',
    })
  })

  it('reads as of a hold what was there when it was taken, again and again', async () => {
    const tenant = 'holds'
    await keys.setMany(
      [
        { key: 'h/a', value: '1' },
        { key: 'h/b', value: '1' },
        { key: 'h/t', value: 't', ttlMs: 60_000 },
      ],
      { tenant },
    )
    const hold = await keys.hold('test', { tenant })
    const read = async () => {
      const page = await keys.list({ prefix: 'h/', asOf: hold, limit: 2, tenant })
      const more = await keys.list({
        prefix: 'h/',
        asOf: hold,
        limit: 2,
        tenant,
        cursor: page.cursor as string,
      })
      const one = await keys.getMany(['h/a', 'h/c'], { asOf: hold, tenant })
      return [...page.entries, ...more.entries, ...one].map(
        (entry) => entry && `${entry.key}=${entry.text()}`,
      )
    }
    const before = await read()
    await keys.setMany(
      [
        { key: 'h/a', value: '2' },
        { key: 'h/c', value: '2', norev: true },
      ],
      { tenant },
    )
    await keys.delete('h/b', { tenant })
    await keys.extend('h/t', 1, { tenant })
    const after = await read()

    expect(before).toEqual(['h/a=1', 'h/b=1', 'h/t=t', 'h/a=1', undefined])
    expect(after).toEqual(before)
    expect((await keys.get('h/b', { asOf: hold, tenant }))?.text()).toBe('1')
    expect(await hold.renew(1000)).toBe(true)
    await hold.release()
    expect(await hold.renew(1000)).toBe(false)
    await expect(keys.get('h/a', { asOf: hold, tenant })).rejects.toMatchObject({ code: 'KEY_HOLD_EXPIRED' })
  })

  it('increments exactly over 64 bits, or refuses and changes nothing', async () => {
    await keys.set('n/a', '9007199254740991', { ttlMs: 60_000 })
    const exact = await keys.increment('n/a', 2n)
    await keys.set('n/b', '9223372036854775807')
    await keys.set('n/c', 'seven')
    const fresh = await keys.increment('n/d', -1n, { ttlMs: 60_000 })

    expect(exact).toMatchObject({ value: 9007199254740993n, revision: 1n, expiresAt: expect.any(Date) })
    expect((await keys.get('n/a'))?.integer()).toBe(9007199254740993n)
    await expect(keys.increment('n/b', 1n)).rejects.toBeInstanceOf(KeyValueError)
    await expect(keys.increment('n/c', 1n)).rejects.toMatchObject({ code: 'KEY_VALUE' })
    expect((await keys.get('n/b'))?.revision).toBe(0n)
    expect((await keys.get('n/c'))?.text()).toBe('seven')
    expect(fresh).toMatchObject({ value: -1n, revision: 0n, expiresAt: expect.any(Date) })
  })

  it('refuses what cannot be right before anything is sent, naming the field', async () => {
    const refused = async (call: () => unknown, field: string) =>
      await expect((async () => await call())()).rejects.toMatchObject({ code: 'INVALID_ARGUMENT', field })

    await refused(() => keys.get(''), 'key')
    await refused(() => keys.get('__holdfast:x'), 'key')
    await refused(() => keys.get('x'.repeat(1025)), 'key')
    await refused(() => keys.get('a\u0000b'), 'key')
    await refused(() => keys.set('x', null as never), 'value')
    await refused(() => keys.set('x', '\ud800'), 'value')
    await refused(() => keys.set('x', 'y', { ttlMs: 0 }), 'ttlMs')
    await refused(() => keys.set('x', 'y', { ttlMs: -1 }), 'ttlMs')
    await refused(() => keys.set('x', 'y', { ifRevision: 1 as never }), 'ifRevision')
    await refused(() => keys.set('x', 'y', { norev: 'yes' as never }), 'norev')
    await refused(() => keys.set('x', 'y', { durability: 'forever' as never }), 'durability')
    await refused(
      () =>
        keys.setMany([
          { key: 'x', value: 'y' },
          { key: '', value: 'y' },
        ]),
      'items[1].key',
    )
    await refused(() => keys.getMany(['x', '']), 'keys[1]')
    await refused(() => keys.extend('x', 0), 'ttlMs')
    await refused(() => keys.increment('x', 0.5 as never), 'by')
    await refused(() => keys.list({}), 'bucket')
    await refused(() => keys.list({ prefix: 'a', bucket: 'b' }), 'bucket')
    await refused(() => keys.get('x', { asOf: new Date(), atRevision: 1n }), 'atRevision')
    await refused(() => keys.get('x', { asOf: 5 as never }), 'asOf')
    await refused(() => keys.watch(5 as never), 'watched')
  })

  it('gives values as what they are, or says what they are not', async () => {
    await keys.setMany([
      { key: 'typed/json', value: '{"a":1}' },
      { key: 'typed/true', value: 'true' },
      { key: 'typed/number', value: '-0012' },
      { key: 'typed/bytes', value: new Uint8Array([0xff, 0xfe]) },
    ])
    const [json, yes, number, bytes] = await keys.getMany([
      'typed/json',
      'typed/true',
      'typed/number',
      'typed/bytes',
    ])

    expect(json?.json()).toEqual({ a: 1 })
    expect(yes?.boolean()).toBe(true)
    expect(number?.integer()).toBe(-12n)
    for (const wrong of [
      () => bytes?.text(),
      () => bytes?.json(),
      () => yes?.integer(),
      () => json?.boolean(),
      () => bytes?.integer(),
    ])
      expect(wrong).toThrow(KeyValueError)
  })
})

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type App, defineApp, type KeyChange, type Keys, KeyValueError } from '../../src/index.ts'
import { describeEachApp, type EachApp } from '../integration/effects/each-app.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'

describeEachApp('keys', ({ open }) => {
  let opened: EachApp
  let keys: Keys
  beforeAll(async () => {
    // Nothing sweeps: there is no worker.
    opened = await open({ jobs: [], worker: false })
    keys = opened.app.keys
  })
  afterAll(async () => await opened[Symbol.asyncDispose]())

  it('that have expired are absent in every operation before anything sweeps (57)', async () => {
    const names = ['get', 'value', 'revision', 'present', 'absent', 'increment', 'extend', 'delete'].map(
      (name) => `ttl/${name}`,
    )
    await keys.setMany(names.map((key) => ({ key, value: '41', ttlMs: 1 })))
    await eventually(
      'all have expired',
      async () => (await keys.getMany(names)).every((entry) => entry === undefined),
      {
        pollMs: 2,
      },
    )

    expect(await keys.exists('ttl/get')).toBe(false)
    expect((await keys.list({ prefix: 'ttl/' })).entries).toEqual([])
    expect((await keys.list({ bucket: 'ttl' })).entries).toEqual([])
    expect(await keys.get('ttl/get', { asOf: new Date(Date.now() + 3_600_000) })).toBeUndefined()
    expect(await keys.set('ttl/value', 'x', { ifValue: '41' })).toMatchObject({
      ok: false,
      current: undefined,
    })
    expect(await keys.set('ttl/revision', 'x', { ifRevision: 0n, ifPresent: true })).toMatchObject({
      ok: false,
    })
    expect(await keys.set('ttl/present', 'x', { ifPresent: true })).toMatchObject({ ok: false, revision: 0n })
    expect(await keys.set('ttl/absent', 'x', { ifAbsent: true })).toMatchObject({ ok: true, revision: 1n })
    expect(await keys.increment('ttl/increment', 1n)).toMatchObject({
      value: 1n,
      revision: 1n,
      expiresAt: null,
    })
    expect(await keys.extend('ttl/extend', 1000)).toMatchObject({ ok: false })
    expect(await keys.delete('ttl/delete')).toMatchObject({ ok: false, revision: 0n })
    expect(
      await opened.sql(`select 1 from holdfast.key_change where kind = 'expired' and key like 'ttl/%'`),
    ).toEqual([])
  })

  it('tell absent from empty, and a refusal always has what the next try needs (58)', async () => {
    const absent = await keys.set('empty/a', '', { ifAbsent: true })
    const missing = await keys.set('empty/b', 'x', { ifValue: '' })
    const found = await keys.get('empty/a')
    const again = await keys.set('empty/a', 'x', { ifAbsent: true })
    const fits = await keys.set('empty/a', 'x', { ifValue: '' })

    expect([absent.ok, missing.ok, again.ok, fits.ok]).toEqual([true, false, false, true])
    expect(found?.value.length).toBe(0)
    for (const prepare of [
      async () => {},
      async () => await keys.set('next', 'v'),
      async () => await keys.delete('next'),
    ]) {
      await prepare()
      const refused = await keys.set('next', 'x', { ifRevision: 77n })
      if (refused.ok) throw new Error('77 is no revision')
      expect(await keys.set('next', 'y', { ifRevision: refused.revision })).toMatchObject({ ok: true })
    }
    const refused = await keys.set('next', 'x', { ifAbsent: true })
    expect(
      !refused.ok && refused.current && (await keys.set('next', 'z', { ifValue: refused.current.value })).ok,
    ).toBe(true)
  })

  it('are listed by the literal characters of a prefix (59)', async () => {
    const tenant = 'literal'
    const all = ['a_b', 'aXb', 'a%b', '100%', 'a\\b']
    await keys.setMany(
      all.map((key) => ({ key, value: 'x' })),
      { tenant },
    )
    const list = async (prefix: string) => (await keys.list({ prefix, tenant })).entries.map(({ key }) => key)

    expect(await list('a_')).toEqual(['a_b'])
    expect(await list('a%')).toEqual(['a%b'])
    expect(await list('a\\')).toEqual(['a\\b'])
    expect(await list('%')).toEqual([])
  })

  it('count exactly over 64 bits, or refuse and leave the value as it is (60)', async () => {
    await keys.set('count/a', '9007199254740991')
    await keys.set('count/b', '9223372036854775807')
    await keys.set('count/c', 'text')
    await keys.set('count/d', '0.5')

    expect((await keys.increment('count/a', 2n)).value).toBe(9007199254740993n)
    for (const key of ['count/b', 'count/c', 'count/d']) {
      await expect(keys.increment(key, 1n)).rejects.toBeInstanceOf(KeyValueError)
      expect((await keys.get(key))?.revision).toBe(0n)
    }
    for (const by of [0.5, Number.NaN, 1, '1', 2n ** 63n])
      await expect(keys.increment('count/a', by as bigint)).rejects.toMatchObject({
        code: 'INVALID_ARGUMENT',
        field: 'by',
      })
    expect((await keys.get('count/a'))?.text()).toBe('9007199254740993')
  })
})

describe('a watcher of keys', () => {
  let db: TestDatabase
  let app: App
  beforeAll(async () => {
    db = await createDatabase()
    app = defineApp({ name: 'watching', database: db.url, jobs: [] })
  })
  afterAll(async () => {
    await app.close()
    await db.drop()
  })

  it('whose listening backend is killed gets what happens meanwhile, once and in order (63)', async () => {
    const other = defineApp({ name: 'other', database: db.url, jobs: [] })
    const controller = new AbortController()
    const watch = app.keys.watch('w/', { signal: controller.signal })
    const changes: KeyChange[] = []
    const ended = (async () => {
      for await (const change of watch) changes.push(change)
    })()
    await watch.started
    await other.keys.set('w/0', 'first')
    await eventually('the first change', () => changes.length === 1, { pollMs: 5 })
    await db.sql(
      `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'holdfast watching'`,
    )
    for (const key of ['w/1', 'w/2', 'w/3']) await other.keys.set(key, 'x')
    await other.keys.delete('w/1')
    await eventually('all changes', () => changes.length >= 5, { pollMs: 5, deadlineMs: 15_000 })
    controller.abort()
    await ended
    await other.close()

    expect(changes.map((change) => change.kind !== 'resync' && [change.kind, change.key])).toEqual([
      ['set', 'w/0'],
      ['set', 'w/1'],
      ['set', 'w/2'],
      ['set', 'w/3'],
      ['deleted', 'w/1'],
    ])
  })
})

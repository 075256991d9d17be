import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type App, defineApp, type KeyChange } from '../../../src/index.ts'
import { createDatabase, type TestDatabase } from '../../support/database.ts'
import { eventually } from '../../support/eventually.ts'

const WRITERS = 8
const ROUNDS = 40

let db: TestDatabase
let writer: App
let watcher: App

beforeAll(async () => {
  db = await createDatabase()
  writer = defineApp({ name: 'writer', database: db.url, jobs: [] })
  watcher = defineApp({ name: 'watcher', database: db.url, jobs: [] })
})
afterAll(async () => {
  await writer.close()
  await watcher.close()
  await db.drop()
})

/** Ends every connection of the watching application. */
const terminate = async () =>
  await db.sql(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and application_name = 'holdfast watcher'`,
  )

describe('keys under concurrent writers', () => {
  for (const durability of ['persistent', 'ephemeral'] as const) {
    it(`of ${durability} keys, a watcher whose connections are ended gets every committed change once and in order`, async () => {
      const o = { durability, tenant: durability }
      const controller = new AbortController()
      const watch = watcher.keys.watch('load/', { ...o, signal: controller.signal })
      const changes: KeyChange[] = []
      const ended = (async () => {
        for await (const change of watch) changes.push(change)
      })()
      await watch.started
      let committed = 0
      const write = async (name: number) => {
        for (let round = 0; round < ROUNDS; round += 1) {
          const undo = round % 4 === 1
          const done = writer.transaction(async (tx) => {
            const first = round % 2 === 0 ? `load/own/${name}` : 'load/a'
            await writer.keys.increment(first, 1n, { ...o, tx })
            await writer.keys.set('load/b', `${name}/${round}`, { ...o, tx, norev: round % 3 === 0 })
            if (undo) throw new Error('undo')
          })
          await done.then(
            () => {
              committed += 2
            },
            (error) => {
              if (!undo) throw error
            },
          )
          if (name === 0 && round % 10 === 5) await terminate()
        }
      }
      await Promise.all(Array.from({ length: WRITERS }, async (_, name) => await write(name)))
      await eventually('all changes', () => changes.length >= committed, { deadlineMs: 20_000 })
      controller.abort()
      await ended

      expect(committed).toBeGreaterThan(WRITERS * ROUNDS)
      expect(changes.length).toBe(committed)
      const places = changes.map(({ place }) => place)
      expect(places).toEqual([...places].sort((a, b) => Number(a - b)))
      const revisions = new Map<string, bigint>()
      for (const change of changes) {
        if (change.kind === 'resync') throw new Error('nothing was trimmed')
        expect(change.revision, change.key).toBe((revisions.get(change.key) ?? -1n) + 1n)
        revisions.set(change.key, change.revision)
      }
    })
  }

  it('lets one of many compare-and-sets win, at each revision', async () => {
    const tries = Array.from({ length: 20 }, async (_, index) => {
      for (let wins = 0, answer = await writer.keys.set('cas', `${index}`, { ifRevision: -1n }); wins < 5; ) {
        if (answer.ok) wins += 1
        answer = await writer.keys.set('cas', `${index}`, { ifRevision: answer.revision })
      }
    })
    await Promise.all(tries)

    const revisions = await writer.keys.revisions('cas', { limit: 1000 })
    expect(revisions.map(({ revision }) => revision)).toEqual(
      Array.from({ length: revisions.length }, (_, index) => BigInt(revisions.length - 1 - index)),
    )
    expect(revisions.length).toBeGreaterThanOrEqual(100)
  })

  it('adds every increment once, and creates a key once, over many connections', async () => {
    const answers = await Promise.all(
      Array.from({ length: 60 }, async () => await writer.keys.increment('sum', 2n)),
    )
    const created = await Promise.all(
      Array.from({ length: 30 }, async () => await writer.keys.set('fresh/a/b', 'x', { ifAbsent: true })),
    )

    expect(new Set(answers.map(({ value }) => value)).size).toBe(60)
    expect((await writer.keys.get('sum'))?.integer()).toBe(120n)
    expect(created.filter(({ ok }) => ok).length).toBe(1)
  })

  it('sets the same keys in opposite orders without a deadlock', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `order/${index}`)
    const batches = Array.from({ length: 20 }, async (_, index) => {
      const items = (index % 2 === 0 ? names : names.toReversed()).map((key) => ({ key, value: `${index}` }))
      return await writer.keys.setMany(items)
    })

    const answers = await Promise.all(batches)

    expect(answers.flat().every(({ ok }) => ok)).toBe(true)
    const values = (await writer.keys.getMany(names)).map((entry) => entry?.text())
    expect(new Set(values).size).toBe(1)
  })

  it('keeps a listing of a script true: nobody creates, changes or deletes a key of it meanwhile', async () => {
    await writer.keys.set('guard/a', '1')
    const client = await db.connect()
    await client.query('begin')
    await client.query(`select holdfast.key_guard('', false, 'guard/')`)
    const before = await client.query(`select key from holdfast.key_bucket('', false, 'guard', null)`)
    const others = Promise.all([
      writer.keys.set('guard/new', '1'),
      writer.keys.set('guard/a', '2'),
      writer.keys.set('guard/deep/er', '1'),
    ])
    const beside = await writer.keys.set('guarded', '1')
    const after = await client.query(
      `select key, revision from holdfast.key_bucket('', false, 'guard', null)`,
    )
    await client.query('commit')
    await others

    expect(beside.ok).toBe(true)
    expect(before.rows).toEqual([{ key: 'guard/a' }])
    expect(after.rows).toEqual([{ key: 'guard/a', revision: '0' }])
    expect((await writer.keys.list({ bucket: 'guard' })).entries.map(({ key }) => key)).toEqual([
      'guard/a',
      'guard/new',
    ])
  })

  it('locks keys that do not exist, and forgets those that were not written', async () => {
    const client = await db.connect()
    await client.query('begin')
    await client.query(`select holdfast.key_lock('', false, '{lock/b,lock/a}', '{t,f}')`)
    const waiting = writer.keys.set('lock/a', 'x')
    const written = await client.query(
      `select revision from holdfast.key_set('', false, 'lock/b', 'y', null, null, null, null, null, null)`,
    )
    await client.query(`select holdfast.key_unlock_unwritten('', false, '{lock/b,lock/a}')`)
    await client.query('commit')

    expect(written.rows).toEqual([{ revision: '0' }])
    expect(await waiting).toMatchObject({ ok: true, revision: 0n })
    expect(await db.sql(`select 1 from holdfast.key_value where revision = -1`)).toEqual([])
  })
})

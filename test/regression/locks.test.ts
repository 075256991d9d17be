import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type App, defineApp } from '../../src/index.ts'
import { describeEachApp, type EachApp } from '../integration/effects/each-app.ts'
import { createDatabase, openPool, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { startProxy } from '../support/proxy.ts'

// A rejection that nobody handles fails the run: vitest sees to that.

describeEachApp('a lock', ({ open }) => {
  let opened: EachApp
  let app: App
  beforeAll(async () => {
    opened = await open({ jobs: [], worker: false })
    app = opened.app
  })
  afterAll(async () => await opened[Symbol.asyncDispose]())

  it('never excludes another name, whatever hash they share (50)', async () => {
    const locks = [await app.locks.acquire('lock:3608'), await app.locks.acquire('lock:282832')]
    expect(locks.map((lock) => lock.held)).toEqual([true, true])
    // The last two are one letter, composed and not.
    for (const name of ['a', 'A', 'a ', 'a/', 'a%', 'a_', 'a\\', '\u00e4', 'a\u0308'])
      expect((await app.locks.acquire(`names ${name}`)).held, name).toBe(true)
  })

  it('is refused to the second caller in the same process, which may wait (51)', async () => {
    const first = await app.locks.acquire('51')
    expect((await app.locks.acquire('51')).held).toBe(false)
    const second = app.locks.acquire('51', { waitMs: 60_000 })
    await first.release()
    expect((await second).held).toBe(true)
    expect(await first.release()).toBe(false)
    expect((await app.locks.acquire('51')).held).toBe(false)
  })

  it('is not touched by a past owner (52)', async () => {
    const a = await app.locks.acquire('52', { leaseMs: 100 })
    const b = await app.locks.acquire('52', { leaseMs: 60_000, waitMs: 20_000 })
    const before = await app.locks.info('52')
    expect([await a.extend(1000), await a.release(), await a.release()]).toEqual([false, false, false])
    expect(await app.locks.info('52')).toEqual(before)
    expect(before).toMatchObject({ fencingToken: b.fencingToken, owner: b.owner, expiresAt: b.expiresAt })
    expect(a.held).toBe(false)
    expect(b.held).toBe(true)
  })

  it('is granted at once to the next, when an acquire before it timed out or was aborted (53)', async () => {
    const stop = new AbortController()
    const a = await app.locks.acquire('53')
    const timedOut = app.locks.acquire('53', { waitMs: 50, retryMs: 10 })
    const aborted = app.locks.acquire('53', { waitMs: 60_000, retryMs: 10, signal: stop.signal })
    expect((await timedOut).held).toBe(false)
    stop.abort()
    expect((await aborted).held).toBe(false)
    await a.release()
    const c = await app.locks.acquire('53')
    expect(c.held).toBe(true)
    expect(await app.locks.info('53')).toMatchObject({ owner: c.owner })
  })

  it('is granted to one of fifty who try a fresh name at once, and refused to the others (55)', async () => {
    for (let name = 0; name < 20; name += 1) {
      const tries = await Promise.all(
        Array.from({ length: 50 }, async () => await app.locks.acquire(`55 ${name}`)),
      )
      expect(tries.filter((lock) => lock.held)).toHaveLength(1)
    }
  })

  it('rises strictly by grant, keeps its token over extensions, also when the row is forgotten (54)', async () => {
    let last = 0n
    for (let round = 0; round < 30; round += 1) {
      const durability = round % 2 ? 'persistent' : 'ephemeral'
      const lock = await app.locks.acquire('54', { durability })
      expect(lock.fencingToken).toBeGreaterThan(last)
      last = lock.fencingToken as bigint
      if (round % 3 === 0) expect(await lock.extend(1000)).toBe(true)
      expect((await lock.info())?.fencingToken).toBe(last)
      await lock.release()
      if (round % 5 !== 0) continue
      for (const twin of ['', '_ephemeral']) {
        await opened.sql(`update holdfast.lock${twin} set prune_at = now() where resource = '54'`)
        await opened.sql(`select holdfast.prune_locks${twin}('0 s', 100)`)
        expect(await opened.sql(`select from holdfast.lock${twin} where resource = '54'`)).toEqual([])
      }
    }
  })

  it('that is renewed by itself tells of its loss, rejects nothing, and is released twice harmlessly (56)', async () => {
    const lock = await app.locks.acquire('56', { leaseMs: 3000, renew: true })
    await opened.sql(`delete from holdfast.lock where resource = '56'`)
    const other = await app.locks.acquire('56')
    await eventually('the loss', () => lock.signal.aborted)
    expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', why: 'gone' })
    expect([await lock.release(), await lock.release()]).toEqual([false, false])
    expect(await app.locks.info('56')).toMatchObject({ owner: other.owner })
  })

  it('that is forgotten is one that nobody has held for a while', async () => {
    await app.locks.acquire('kept held')
    await (await app.locks.acquire('kept young')).release()
    const old = await app.locks.acquire('old')
    await old.release()
    await opened.sql(`update holdfast.lock set prune_at = now()`)
    await opened.sql(`update holdfast.lock set expires_at = now() - interval '2 days' where resource = 'old'`)
    await opened.sql(`select holdfast.prune_locks('1 day', 1000)`)
    const left = await opened.sql(
      `select resource from holdfast.lock where resource in ('kept held', 'kept young', 'old') order by 1`,
    )
    expect(left).toEqual([{ resource: 'kept held' }, { resource: 'kept young' }])
    expect((await app.locks.acquire('old')).fencingToken).toBeGreaterThan(old.fencingToken as bigint)
  })
})

describe('a lock (PostgreSQL)', () => {
  let db: TestDatabase
  beforeAll(async () => {
    db = await createDatabase()
  })
  afterAll(async () => await db.drop())

  it('released on any connection of a pool is free at once for another process (50)', async () => {
    const pool = openPool({ connectionString: db.url, max: 5 })
    const app = defineApp({ name: 'one', database: pool, jobs: [] })
    const other = defineApp({ name: 'two', database: db.url, jobs: [] })
    for (let round = 0; round < 5; round += 1) {
      const lock = await app.locks.acquire('50')
      await Promise.all(Array.from({ length: 5 }, async () => await pool.query('select pg_sleep(0.01)')))
      expect(await lock.release()).toBe(true)
      const next = await other.locks.acquire('50')
      expect(next.held).toBe(true)
      await next.release()
    }
    await app.close()
    await other.close()
    await pool.end()
  })

  it('rises strictly over three processes; an acquire whose answer was lost makes no second grant (54)', async () => {
    await using proxy = await startProxy(db.url)
    const apps = [db.url, db.url, proxy.url(db.name)].map((database) =>
      defineApp({ name: 'test', database, jobs: [] }),
    )
    const grants: bigint[] = []
    await Promise.all(
      apps.map(async (app) => {
        for (let round = 0; round < 33; round += 1) {
          const lock = await app.locks.acquire('54', { waitMs: 60_000, retryMs: 10 })
          grants.push(lock.fencingToken as bigint)
          if (round % 4 === 0) expect(await lock.extend(20_000)).toBe(true)
          expect(await lock.release()).toBe(true)
        }
      }),
    )
    expect(grants).toHaveLength(99)
    for (const [index, token] of grants.entries()) expect(token).toBeGreaterThan(grants[index - 1] ?? 0n)

    const lost = proxy.dropAnswer('acquire_lock')
    const lock = await (apps[2] as App).locks.acquire('54 lost')
    await lost
    const [row] = await db.sql(`select token::text, owner from holdfast.lock where resource = '54 lost'`)
    expect(lock.held).toBe(true)
    expect(row).toEqual({ token: String(lock.fencingToken), owner: lock.owner })
    const [sequence] = await db.sql('select last_value::text as last from holdfast.fencing_token_seq')
    expect(sequence).toEqual({ last: String(lock.fencingToken) })

    // A release whose answer was lost is known by its repetition.
    const lostRelease = proxy.dropAnswer('release_lock')
    await expect(lock.release()).rejects.toMatchObject({ code: 'UNAVAILABLE' })
    await lostRelease
    expect(await lock.release()).toBe(true)
    for (const app of apps) await app.close()
  })

  it('whose answer was lost for good is free again soon (53)', async () => {
    await using proxy = await startProxy(db.url)
    const app = defineApp({ name: 'test', database: proxy.url(db.name), jobs: [] })
    await app.locks.acquire('warm')
    const lost = proxy.dropAnswer('acquire_lock').then(() => proxy.refuse())
    const outcome = app.locks.acquire('53 lost')
    outcome.catch(() => {})
    await lost
    await expect(outcome).rejects.toMatchObject({ code: 'OUTCOME_UNKNOWN', changed: 'unknown' })
    proxy.pass()
    await eventually('its release', async () => {
      const [row] = await db.sql(`select owner from holdfast.lock where resource = '53 lost'`)
      return row !== undefined && row['owner'] === null
    })
    await app.close()
  })
})

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type App, defineApp, type Lock } from '../../../src/index.ts'
import { createDatabase, type TestDatabase } from '../../support/database.ts'
import { eventually } from '../../support/eventually.ts'
import { describeEachApp, type EachApp } from '../effects/each-app.ts'

/** Longer than any test: what wakes a waiter before it is not its polling. */
const NEVER_MS = 3_600_000

describeEachApp('waiting in one process', ({ open }) => {
  let opened: EachApp
  let app: App
  beforeAll(async () => {
    opened = await open({ jobs: [], worker: false })
    app = opened.app
  })
  afterAll(async () => await opened[Symbol.asyncDispose]())

  it('ends with a lock that is not held when its time is over, and asks no more', async () => {
    const held = await app.locks.acquire('time')
    const waiter = await app.locks.acquire('time', { waitMs: 60, retryMs: 10 })
    expect(waiter).toMatchObject({ held: false, fencingToken: undefined })
    await held.release()
    expect((await app.locks.acquire('time')).held).toBe(true)
  })

  it('goes by the order of arrival, woken by each release', async () => {
    const order: number[] = []
    const first = await app.locks.acquire('order')
    const waiters = Array.from({ length: 10 }, async (_, index) => {
      const lock = await app.locks.acquire('order', { waitMs: 60_000, retryMs: NEVER_MS })
      expect(lock.held).toBe(true)
      order.push(index)
      await lock.release()
      return lock.fencingToken as bigint
    })
    await first.release()
    const tokens = await Promise.all(waiters)
    expect(order).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9])
    for (const [index, token] of tokens.entries()) expect(token).toBeGreaterThan(tokens[index - 1] ?? 0n)
  })

  it('looks when the lease of the holder is over, though nobody releases it', async () => {
    await app.locks.acquire('lease', { leaseMs: 200 })
    const waiter = await app.locks.acquire('lease', { waitMs: 20_000, retryMs: NEVER_MS })
    expect(waiter.held).toBe(true)
  })

  it('ends when its signal aborts, and blocks nobody behind it', async () => {
    const held = await app.locks.acquire('signal')
    const stop = new AbortController()
    const first = app.locks.acquire('signal', { waitMs: 60_000, retryMs: NEVER_MS, signal: stop.signal })
    const second = app.locks.acquire('signal', { waitMs: 60_000, retryMs: NEVER_MS })
    stop.abort()
    expect((await first).held).toBe(false)
    await held.release()
    expect((await second).held).toBe(true)
    expect((await app.locks.acquire('signal', { signal: stop.signal })).held).toBe(false)
  })

  it('goes on for the next in the line when the first has given up', async () => {
    await app.locks.acquire('first', { leaseMs: 400 })
    const first = app.locks.acquire('first', { waitMs: 20, retryMs: NEVER_MS })
    const second = app.locks.acquire('first', { waitMs: 20_000, retryMs: NEVER_MS })
    expect((await first).held).toBe(false)
    expect((await second).held).toBe(true)
  })

  it('by the owner that has the lock does not stand in line behind others', async () => {
    const held = await app.locks.acquire('line', { owner: 'me' })
    const other = app.locks.acquire('line', { waitMs: 60_000, retryMs: NEVER_MS })
    const again = await app.locks.acquire('line', { owner: 'me', waitMs: 60_000, retryMs: NEVER_MS })
    expect(again.fencingToken).toBe(held.fencingToken)
    await again.release()
    expect((await other).held).toBe(true)
  })

  it('is as quick as the most impatient in the line', async () => {
    await app.locks.acquire('impatient')
    const patient = app.locks.acquire('impatient', { waitMs: 60_000, retryMs: NEVER_MS })
    const impatient = app.locks.acquire('impatient', { waitMs: 60_000, retryMs: 10 })
    // No release that anybody could hear of.
    await opened.sql(`update holdfast.lock set owner = null where resource = 'impatient'`)
    const lock = await patient
    expect(lock.held).toBe(true)
    await lock.release()
    expect((await impatient).held).toBe(true)
  })

  it('marks the row, so that only releases that somebody waits for are announced', async () => {
    const lock = await app.locks.acquire('mark')
    const marked = async () =>
      await opened.sql(
        `select waited_until > clock_timestamp() as marked from holdfast.lock where resource = 'mark'`,
      )
    expect(await marked()).toEqual([{ marked: null }])
    const waiter = app.locks.acquire('mark', { waitMs: 60_000, retryMs: NEVER_MS })
    await eventually('the mark', async () => (await marked())[0]?.['marked'])
    await lock.release()
    expect((await waiter).held).toBe(true)
  })
})

describe('waiting over processes (PostgreSQL)', () => {
  let db: TestDatabase
  const apps: App[] = []
  /** An application of its own, as another process has it. */
  const openApp = (options: object = {}): App => {
    const app = defineApp({ name: `test ${apps.length}`, database: db.url, jobs: [], ...options })
    apps.push(app)
    return app
  }
  beforeAll(async () => {
    db = await createDatabase()
  })
  afterAll(async () => {
    for (const app of apps) await app.close()
    await db.drop()
  })

  /** A waiter that has marked the row, listens, and sleeps. */
  async function waiting(app: App, resource: string, options: object = {}): Promise<{ lock: Promise<Lock> }> {
    const lock = app.locks.acquire(resource, { waitMs: 60_000, retryMs: NEVER_MS, ...options })
    await eventually('a waiter', async () => {
      const [row] = await db.sql(
        `select waited_until > clock_timestamp() as marked from holdfast.lock where resource = $1
         union all select waited_until > clock_timestamp() from holdfast.lock_ephemeral where resource = $1`,
        [resource],
      )
      const [listener] = await db.sql(
        `select from pg_stat_activity where datname = current_database() and application_name = $1 and query ilike 'listen%' and state = 'idle'`,
        [`holdfast ${app.name}`],
      )
      return row?.['marked'] === true && listener !== undefined
    })
    return { lock }
  }

  it.each(['persistent', 'ephemeral'] as const)(
    'is woken by a release elsewhere, %s: no polling is needed',
    async (durability) => {
      const [here, there] = [openApp(), openApp()]
      const held = await there.locks.acquire(`hint ${durability}`, { durability })
      const waiter = await waiting(here, `hint ${durability}`, { durability })
      await held.release()
      expect((await waiter.lock).held).toBe(true)
    },
  )

  it('is woken by a release in a transaction when that commits, by force, and by a lease that was made shorter', async () => {
    const [here, there] = [openApp(), openApp()]
    const held = await there.locks.acquire('tx')
    const byTransaction = await waiting(here, 'tx')
    await there.transaction(async (tx) => await held.release({ tx }))
    expect((await byTransaction.lock).held).toBe(true)

    await there.locks.acquire('force')
    const byForce = await waiting(here, 'force')
    await there.locks.forceRelease('force', { actor: 'me', reason: 'test' })
    expect((await byForce.lock).held).toBe(true)

    const long = await there.locks.acquire('shorter', { leaseMs: 3_600_000 })
    const byLease = await waiting(here, 'shorter')
    await long.extend(100)
    expect((await byLease.lock).held).toBe(true)
  })

  it('finds a release by looking alone, where no hints come', async () => {
    const here = openApp({ pooler: true })
    const held = await openApp().locks.acquire('poll')
    const waiter = here.locks.acquire('poll', { waitMs: 60_000, retryMs: 10 })
    await held.release()
    expect((await waiter).held).toBe(true)
  })

  it('that was given up while its try was under way is not granted the lock', async () => {
    const here = openApp()
    for (const waitMs of [0, 60_000]) {
      const resource = `under way ${waitMs}`
      const client = await db.connect()
      await client.query('begin')
      await client.query('lock table holdfast.lock in access exclusive mode')
      const stop = new AbortController()
      const trying = here.locks.acquire(resource, { waitMs, signal: stop.signal })
      await eventually('the try to be under way', async () => {
        const [row] = await db.sql<{ n: number }>(
          `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%acquire_lock%'`,
        )
        return row?.n
      })
      stop.abort()
      expect((await trying).held).toBe(false)
      await client.query('commit')
      // It was granted, as its token shows, and is released again.
      await eventually('its release', async () => {
        const [row] = await db.sql('select owner, token from holdfast.lock where resource = $1', [resource])
        return row !== undefined && row['token'] !== null && row['owner'] === null
      })
    }
  })

  it('is over when its time is, though the try does not come back', async () => {
    const here = openApp()
    const client = await db.connect()
    await client.query('begin')
    await client.query('lock table holdfast.lock in access exclusive mode')
    expect((await here.locks.acquire('stuck', { waitMs: 100 })).held).toBe(false)
    await client.query('commit')
    await eventually('its release', async () => {
      const [row] = await db.sql(`select owner, token from holdfast.lock where resource = 'stuck'`)
      return row !== undefined && row['token'] !== null && row['owner'] === null
    })
  })

  it('ends when its application closes', async () => {
    const here = openApp()
    const held = await openApp().locks.acquire('close')
    const waiter = await waiting(here, 'close')
    await here.close()
    expect((await waiter.lock).held).toBe(false)
    await held.release()
    await expect(here.locks.acquire('close')).rejects.toMatchObject({ code: 'CLOSED' })
    expect(await openApp().locks.acquire('close')).toMatchObject({ held: true })
  })

  it('hands the lock over between twenty processes that each want it, with no two at once', async () => {
    const members = Array.from({ length: 5 }, () => openApp({ maxConnections: 2 }))
    let inside = 0
    let grants = 0
    const tokens: bigint[] = []
    await Promise.all(
      members.flatMap((app) =>
        Array.from({ length: 4 }, async () => {
          await using lock = await app.locks.acquire('crowd', {
            waitMs: 60_000,
            retryMs: NEVER_MS,
            leaseMs: 60_000,
          })
          expect(lock.held).toBe(true)
          inside += 1
          expect(inside).toBe(1)
          grants += 1
          tokens.push(lock.fencingToken as bigint)
          await db.sql('select 1')
          inside -= 1
        }),
      ),
    )
    expect(grants).toBe(20)
    expect(tokens).toEqual([...tokens].sort((a, b) => (a < b ? -1 : 1)))
    expect(new Set(tokens).size).toBe(20)
  })
})

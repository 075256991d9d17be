import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type App, defineApp, LockLostError } from '../../../src/index.ts'
import { createDatabase } from '../../support/database.ts'
import { eventually } from '../../support/eventually.ts'
import { startProgram } from '../../support/processes.ts'
import { startProxy } from '../../support/proxy.ts'
import { describeEachApp, type EachApp } from '../effects/each-app.ts'

// A rejection that nobody handles fails the run: vitest sees to that.

async function aborted(signal: AbortSignal): Promise<unknown> {
  if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve))
  return signal.reason
}

describeEachApp('renewal', ({ open }) => {
  let opened: EachApp
  let app: App
  beforeAll(async () => {
    opened = await open({ jobs: [], worker: false })
    app = opened.app
  })
  afterAll(async () => await opened[Symbol.asyncDispose]())

  it('keeps a lock past its lease, with the same token, until it is released', async () => {
    const lock = await app.locks.acquire('kept', { leaseMs: 3000, renew: true })
    const end = lock.expiresAt as Date
    await eventually('a second renewal', () => (lock.expiresAt as Date).getTime() > end.getTime() + 500)
    const refused = await app.locks.acquire('kept', { waitMs: 200, retryMs: 10 })
    expect(refused.held).toBe(false)
    expect(lock.held).toBe(true)
    expect(await lock.info()).toMatchObject({ fencingToken: lock.fencingToken })
    expect(await lock.release()).toBe(true)
    expect(lock.signal.aborted).toBe(false)
    expect((await app.locks.acquire('kept')).held).toBe(true)
  })

  it('tells by the signal when the lock was taken by force, deleted or taken over, and asks no more', async () => {
    const ways = {
      'taken by force': `select holdfast.force_release_lock('', $1, 'me', 'lock', 'test')`,
      deleted: 'delete from holdfast.lock where resource = $1',
      'taken over': `update holdfast.lock set owner = 'you', token = token + 1000 where resource = $1`,
    }
    await Promise.all(
      Object.entries(ways).map(async ([what, statement]) => {
        const lock = await app.locks.acquire(what, { leaseMs: 3000, renew: true })
        await opened.sql(statement, [what])
        const reason = await aborted(lock.signal)
        expect(reason).toBeInstanceOf(LockLostError)
        expect(reason).toMatchObject({ why: 'gone', resource: what, fencingToken: lock.fencingToken })
        expect(lock.held).toBe(false)
        expect(await lock.release()).toBe(false)
      }),
    )
  })

  it('begun inside a transaction of the caller’s goes on after it', async () => {
    const lock = await app.locks.acquire('from outside', { leaseMs: 3000, renew: true })
    const end = lock.expiresAt as Date
    await app.transaction(async (tx) => await tx.query('select 1'))
    await eventually('a renewal', () => (lock.expiresAt as Date).getTime() > end.getTime())
    await lock.release()
  })
})

describe('renewal (PostgreSQL)', () => {
  it('survives a database that cannot be reached while the lease lasts, and ends when it is over', async () => {
    await using db = await createDatabase()
    await using proxy = await startProxy(db.url)
    const app = defineApp({ name: 'test', database: proxy.url(db.name), jobs: [] })
    const lock = await app.locks.acquire('lost', { leaseMs: 4000, renew: true })
    const short = await app.locks.acquire('cut off', { leaseMs: 400, renew: true })
    proxy.refuse()
    proxy.cut()
    const reason = await aborted(short.signal)
    expect(reason).toMatchObject({ code: 'LOCK_LOST', why: 'expired' })
    // Back in time for the longer one.
    proxy.pass()
    const end = lock.expiresAt as Date
    await eventually('a renewal', () => (lock.expiresAt as Date).getTime() > end.getTime(), {
      deadlineMs: 2000,
    })
    expect(lock.held).toBe(true)
    // Whoever was told that the lock is lost does not have it again.
    expect(await short.extend(1000)).toBe(false)
    expect(short.held).toBe(false)
    await app.close()
  })

  it('counts from before the request: an answer that comes late leaves less, and never too much', async () => {
    await using db = await createDatabase()
    await using proxy = await startProxy(db.url)
    const app = defineApp({ name: 'test', database: proxy.url(db.name), jobs: [] })
    await app.locks.acquire('warm')
    proxy.delay(300)
    const lock = await app.locks.acquire('late', { leaseMs: 500 })
    // The answer took 600 ms: the lease is over when it comes.
    expect(lock.held).toBe(false)
    expect(lock.signal.reason).toMatchObject({ why: 'expired' })
    proxy.delay(0)
    await app.close()
  })

  it('keeps no process alive once its application is closed, nor does a wait; the lock stays for its lease', async () => {
    await using db = await createDatabase()
    await using program = startProgram('test/integration/programs/lock-holder.ts', { args: [db.url] })
    const done = await program.message('done')
    expect(done).toMatchObject({ held: true, aborted: false, waiter: false })
    // By itself: nothing ends it.
    expect(await program.exited).toEqual({ code: 0, signal: null })
    const [row] = await db.sql(`select owner is not null as held from holdfast.lock where resource = 'held'`)
    expect(row).toEqual({ held: true })
  })
})

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type App, defineApp } from '../../src/index.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { type Proxy, startProxy } from '../support/proxy.ts'

/** Found by `npm run histories -- --workload lock --seed 22`. */
describe('an extension that makes a lease shorter, and whose answer does not come', () => {
  let db: TestDatabase
  let proxy: Proxy
  let holder: App
  let other: App
  beforeAll(async () => {
    db = await createDatabase()
    proxy = await startProxy(db.url)
    holder = defineApp({ name: 'holder', database: proxy.url(db.name), jobs: [], maxConnections: 2 })
    other = defineApp({ name: 'other', database: db.url, jobs: [], maxConnections: 2 })
  })
  afterAll(async () => {
    await proxy.close()
    await holder.close()
    await other.close()
    await db.drop()
  })

  it('ends what its holder counts on before anybody else has the lock', async () => {
    const lock = await holder.locks.acquire('door', { leaseMs: 60_000 })
    const lost = proxy.dropAnswer('holdfast:extend_lock ', 'hang')
    const extending = lock.extend(200).catch(() => false)
    await lost
    const next = await eventually('another has the lock', async () => {
      const tried = await other.locks.acquire('door', { leaseMs: 60_000 })
      return tried.held ? tried : undefined
    })
    expect(next.fencingToken).toBeGreaterThan(lock.fencingToken ?? 0n)
    expect(lock.held).toBe(false)
    expect(lock.signal.aborted).toBe(true)
    proxy.cut()
    expect(await extending).toBe(false)
  })
})

import type { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type App, defineApp } from '../../../src/index.ts'
import { createDatabase, type TestDatabase } from '../../support/database.ts'
import { eventually } from '../../support/eventually.ts'

/** What needs two connections that wait for each other. */

let db: TestDatabase
let app: App
beforeAll(async () => {
  db = await createDatabase()
  app = defineApp({ name: 'test', database: db.url, jobs: [] })
  await db.sql('create table written (resource text, token bigint)')
})
afterAll(async () => {
  await app.close()
  await db.drop()
})

/** Runs `fn` between `begin` and `commit` of a client of its own, which the test ends by itself. */
async function opened(isolation = 'read committed'): Promise<Client> {
  const client = await db.connect()
  await client.query(`begin isolation level ${isolation}`)
  return client
}

async function expire(resource: string): Promise<void> {
  await db.sql(
    `update holdfast.lock set expires_at = clock_timestamp() - interval '1 ms' where resource = $1`,
    [resource],
  )
}

/** A try has looked, and would lock the row, which a lock on the table keeps it from. */
async function untilLooked(): Promise<void> {
  await eventually('the try to have looked', async () => {
    const [row] = await db.sql<{ n: number }>(
      `select count(*)::int as n from pg_locks where relation = 'holdfast.lock'::regclass and mode = 'RowShareLock' and not granted`,
    )
    return row?.n
  })
}

describe.each(['read committed', 'repeatable read', 'serializable'])('a guarded write at %s', (isolation) => {
  it('keeps the next holder waiting until it is committed, though the lease passes after the assertion', async () => {
    const resource = `guarded ${isolation}`
    const first = await app.locks.acquire(resource)
    const tx = await opened(isolation)
    await app.locks.assert(tx, resource, first.fencingToken as bigint)
    await expire(resource)
    // A try answers at once that it has not got it; so does one that waits.
    expect((await app.locks.acquire(resource)).held).toBe(false)
    expect((await app.locks.acquire(resource, { waitMs: 50 })).held).toBe(false)
    await tx.query('insert into written values ($1, $2)', [resource, first.fencingToken])
    const next = app.locks.acquire(resource, { waitMs: 60_000 })
    await tx.query('commit')

    const second = await next
    expect(second.held).toBe(true)
    expect(await db.sql('select token::text from written where resource = $1', [resource])).toEqual([
      { token: String(first.fencingToken) },
    ])
  })

  it('is refused once somebody else was granted the lock, or the lease is over', async () => {
    const resource = `refused ${isolation}`
    const first = await app.locks.acquire(resource)
    await expire(resource)
    const over = await opened(isolation)
    await expect(app.locks.assert(over, resource, first.fencingToken as bigint)).rejects.toMatchObject({
      code: 'LOCK_LOST',
    })
    await over.query('rollback')

    const second = await app.locks.acquire(resource)
    const tx = await opened(isolation)
    await expect(app.locks.assert(tx, resource, first.fencingToken as bigint)).rejects.toMatchObject({
      code: 'LOCK_LOST',
    })
    await expect(tx.query(`insert into written values ('stale', 0)`)).rejects.toMatchObject({ code: '25P02' })
    await tx.query('rollback')
    const good = await opened(isolation)
    await app.locks.assert(good, resource, second.fencingToken as bigint)
    await good.query('commit')
  })

  it('goes beside extensions of the lock, and its release', async () => {
    const resource = `beside ${isolation}`
    const lock = await app.locks.acquire(resource)
    const tx = await opened(isolation)
    await app.locks.assert(tx, resource, lock.fencingToken as bigint)
    expect(await lock.extend(60_000)).toBe(true)
    expect(await lock.release()).toBe(true)
    await tx.query('insert into written values ($1, $2)', [resource, lock.fencingToken])
    await tx.query('commit')
    expect(await db.sql('select from written where resource = $1', [resource])).toHaveLength(1)
  })

  it('that fails in a try leaves no lock on the row, and the transaction usable', async () => {
    const resource = `no lock ${isolation}`
    const holder = await app.locks.acquire(resource)
    const tx = await opened(isolation)
    expect((await app.locks.acquire(resource, { tx })).held).toBe(false)
    const other = await opened()
    await other.query(`set local lock_timeout = '2s'`)
    await other.query('select from holdfast.lock where resource = $1 for update nowait', [resource])
    await other.query('commit')
    expect(await holder.extend(60_000)).toBe(true)
    await tx.query('select 1')
    await tx.query('commit')
  })
})

describe('a try in a transaction', () => {
  it('waits for an assertion of a grant that is not committed, and tells it what became of it', async () => {
    const first = await app.locks.acquire('pending')
    await expire('pending')
    const granting = await opened()
    const second = await app.locks.acquire('pending', { tx: granting })
    expect(second.held).toBe(true)
    const asserting = await opened()
    const stale = app.locks.assert(asserting, 'pending', first.fencingToken as bigint)
    // It may be refused before the commit is answered.
    stale.catch(() => {})
    await eventually('the assertion to wait', async () => {
      const [row] = await db.sql<{ n: number }>(
        `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock' and query like '%assert_lock%'`,
      )
      return row?.n
    })
    await granting.query('commit')
    await expect(stale).rejects.toMatchObject({ code: 'LOCK_LOST' })
    await asserting.query('rollback')
  })

  it('never waits for one that is open: not for a new name, not for one that is known', async () => {
    await (await app.locks.acquire('known')).release()
    for (const resource of ['known', 'new']) {
      const first = await opened()
      expect((await app.locks.acquire(resource, { tx: first })).held).toBe(true)
      expect((await app.locks.acquire(resource)).held).toBe(false)
      const second = await opened()
      expect((await app.locks.acquire(resource, { tx: second })).held).toBe(false)
      // Its own limits are as they were.
      const { rows } = await second.query('show lock_timeout')
      expect(rows).toEqual([{ lock_timeout: '0' }])
      await first.query('rollback')
      expect((await app.locks.acquire(resource, { tx: second })).held).toBe(true)
      await second.query('commit')
      expect((await app.locks.acquire(resource)).held).toBe(false)
    }
  })

  it('does not get what changed hands since its snapshot, and is not aborted by that', async () => {
    const lock = await app.locks.acquire('snapshot')
    await lock.release()
    const tx = await opened('repeatable read')
    await tx.query('select from holdfast.lock')
    const other = await app.locks.acquire('snapshot')
    expect(other.held).toBe(true)
    expect((await app.locks.acquire('snapshot', { tx })).held).toBe(false)
    await tx.query('select 1')
    await tx.query('commit')
    expect(await other.extend(1000)).toBe(true)
  })

  it('commits to disk, whatever the session says', async () => {
    for (const durability of ['persistent', 'ephemeral'] as const) {
      const tx = await opened()
      await tx.query('set local synchronous_commit = off')
      await app.locks.acquire('to disk', { tx, durability })
      const { rows } = await tx.query('show synchronous_commit')
      expect(rows).toEqual([{ synchronous_commit: 'on' }])
      await tx.query('commit')
    }
  })
})

describe('a try that finds the lock granted between its look and its lock on the row', () => {
  it('is refused, and keeps no lock on the row in a transaction that goes on', async () => {
    await (await app.locks.acquire('between')).release()
    // Lets it look, and keeps it from locking rows.
    const other = await opened()
    await other.query('lock table holdfast.lock in exclusive mode')
    const tx = await opened()
    const trying = app.locks.acquire('between', { tx })
    await untilLooked()
    await other.query(
      `update holdfast.lock set owner = 'other', token = token + 1, expires_at = now() + interval '1 hour' where resource = 'between'`,
    )
    await other.query('commit')
    expect((await trying).held).toBe(false)
    const third = await opened()
    await third.query(`select from holdfast.lock where resource = 'between' for update nowait`)
    await third.query('commit')
    await tx.query('commit')
  })
})

describe('a wait', () => {
  it('misses no release between its look and its mark', async () => {
    const lock = await app.locks.acquire('missed')
    const other = await opened()
    await other.query('lock table holdfast.lock in exclusive mode')
    // The function by itself: the statement around it would wait for the table before it looks.
    const waiter = await db.connect()
    const trying = waiter.query(
      `select held from holdfast.acquire_lock('', 'missed', 'waiter', 30000, 60000)`,
    )
    await untilLooked()
    await other.query(`select holdfast.release_lock('', 'missed', $1, null)`, [lock.owner])
    await other.query('commit')
    expect((await trying).rows).toEqual([{ held: true }])
  })

  it('marks the row beside a transaction that has asserted the lock', async () => {
    const lock = await app.locks.acquire('marked')
    const tx = await opened()
    await app.locks.assert(tx, 'marked', lock.fencingToken as bigint)
    const waiter = app.locks.acquire('marked', { waitMs: 60_000, retryMs: 3_600_000 })
    await eventually('the mark', async () => {
      const [row] = await db.sql(`select waited_until from holdfast.lock where resource = 'marked'`)
      return row?.['waited_until']
    })
    await lock.release()
    await tx.query('commit')
    expect((await waiter).held).toBe(true)
  })
})

describe('many at once', () => {
  it('that are refused in transactions which go on are in nobody’s way: the lock changes hands all the time', async () => {
    const end = new AbortController()
    let inside = 0
    let grants = 0
    const takers = Array.from({ length: 4 }, async () => {
      while (!end.signal.aborted) {
        const lock = await app.locks.acquire('busy', { waitMs: 20_000, retryMs: 10 })
        if (!lock.held) throw new Error('not granted for 20 s')
        inside += 1
        expect(inside).toBe(1)
        grants += 1
        inside -= 1
        await lock.release()
      }
    })
    const clients = [await db.connect(), await db.connect()]
    const triers = clients.map(async (client) => {
      let refused = 0
      while (!end.signal.aborted) {
        await client.query('begin')
        const lock = await app.locks.acquire('busy', { tx: client })
        // Who is refused keeps its transaction open for a while.
        if (!lock.held) refused += 1
        if (!lock.held) await client.query('select pg_sleep(0.005)')
        await client.query('rollback')
      }
      return refused
    })
    await eventually('enough grants', () => grants > 150, { deadlineMs: 25_000 })
    end.abort()
    await Promise.all(takers)
    for (const refused of await Promise.all(triers)) expect(refused).toBeGreaterThan(0)
  })
})

describe('a role with the rights of an application', () => {
  it('can use locks of either durability, and assert them', async () => {
    const role = `app_${Math.random().toString(36).slice(2)}`
    await db.sql(`create role ${role} login`)
    for (const grant of [
      'usage on schema holdfast',
      'usage on all sequences in schema holdfast',
      'select, insert, update on all tables in schema holdfast',
      'execute on all functions in schema holdfast',
    ])
      await db.sql(`grant ${grant} to ${role}`)
    const theirs = defineApp({ name: 'test', database: db.url.replace('postgres@', `${role}@`), jobs: [] })
    for (const durability of ['persistent', 'ephemeral'] as const) {
      const lock = await theirs.locks.acquire('role', { durability })
      expect(lock.held).toBe(true)
      await theirs.transaction(
        async (tx) => await theirs.locks.assert(tx, 'role', lock.fencingToken as bigint, { durability }),
      )
      expect(await lock.extend(1000)).toBe(true)
      expect(await lock.release()).toBe(true)
    }
    await theirs.close()
    await db.sql(`drop owned by ${role}`)
    await db.sql(`drop role ${role}`)
  })
})

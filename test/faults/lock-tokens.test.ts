import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type PostgresServer, startPostgres, volatileSettings } from '../../scripts/postgres-server.ts'
import { createPgDriver } from '../../src/adapters/pg.ts'
import { type App, defineApp } from '../../src/index.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { claim, databaseOf, enqueue, register } from './steps.ts'

/**
 * A fencing token that was handed out is never handed out again, nor one below it, also when the server is killed while
 * nothing but grants of locks waits for the disk: claims of jobs draw from the same sequence, and what they wrote is lost.
 */

const GRANTS = 1000
const ROUNDS = 10
const durabilities = ['persistent', 'ephemeral'] as const

let server: PostgresServer
let db: TestDatabase

beforeAll(async () => {
  // The log is written when somebody waits for it, and otherwise hardly ever.
  const settings = { synchronous_commit: 'off', wal_writer_delay: '10s', autovacuum: 'off' }
  server = await startPostgres({ settings: { ...volatileSettings, ...settings } })
  db = await createDatabase({ server: server.url() })
}, 120_000)
afterAll(async () => {
  await db.drop()
  await server.stop()
})

const openApp = (): App => defineApp({ name: 'test', database: db.url, jobs: [] })

/** Draws tokens as a worker does, in transactions that nobody waits for. */
async function claimJobs(count: number): Promise<bigint[]> {
  const driver = createPgDriver({ url: db.url })
  const database = databaseOf(driver)
  const workerId = await register(database)
  const tokens: bigint[] = []
  for (let index = 0; index < count; index += 1) {
    await enqueue(database, 1)
    for (const claimed of await claim(database, workerId, 1)) tokens.push(claimed.lease.token)
  }
  await driver.close()
  return tokens
}

async function crash(): Promise<void> {
  await server.kill()
  await server.restart()
}

it(`${GRANTS} grants across release, expiry, clean-up and kill -9 of PostgreSQL have tokens that only rise`, async () => {
  const tokens: bigint[] = []
  let claims = 0
  for (let round = 0; round < ROUNDS; round += 1) {
    const app = openApp()
    for (let index = 0; index < GRANTS / ROUNDS; index += 1) {
      if (index % 10 === 0) claims += (await claimJobs(1)).length
      const durability = durabilities[index % 2] as (typeof durabilities)[number]
      const table = durability === 'ephemeral' ? 'lock_ephemeral' : 'lock'
      const resource = `r ${index % 7}`
      const lock = await app.locks.acquire(resource, { durability })
      expect(lock.held).toBe(true)
      tokens.push(lock.fencingToken as bigint)
      if (index % 3 === 0) await lock.extend(60_000)
      // Released; over by its lease; released and forgotten.
      if (index % 4 !== 1) await lock.release()
      else
        await db.sql(
          `update holdfast.${table} set expires_at = clock_timestamp() - interval '1 s' where resource = $1`,
          [resource],
        )
      if (index % 4 === 2) {
        await db.sql(`update holdfast.${table} set prune_at = clock_timestamp() where resource = $1`, [
          resource,
        ])
        await db.sql(`select holdfast.prune_locks('0 s', 100), holdfast.prune_locks_ephemeral('0 s', 100)`)
      }
    }
    // In the middle of somebody's drawing, and with what was drawn not written.
    await claimJobs(1)
    const last = await app.locks.acquire(`last ${round}`, {
      durability: round % 2 ? 'ephemeral' : 'persistent',
    })
    tokens.push(last.fencingToken as bigint)
    await crash()
    await app.close()
    if (round % 2 === 0) {
      const after = openApp()
      expect((await after.locks.info(`last ${round}`))?.fencingToken).toBe(last.fencingToken)
      await after.close()
    }
  }
  expect(tokens.length).toBeGreaterThanOrEqual(GRANTS)
  expect(claims).toBeGreaterThanOrEqual(100)
  for (const [index, token] of tokens.entries()) expect(token).toBeGreaterThan(tokens[index - 1] ?? 0n)
}, 180_000)

describe('a kill right after a grant', () => {
  /** The tokens of a grant right before a crash, and of the next one. */
  async function grantAround(durability: (typeof durabilities)[number]): Promise<readonly [bigint, bigint]> {
    const app = openApp()
    // Whatever else a first grant writes is written by this one.
    await app.locks.acquire(`warm ${Math.random()}`, { durability })
    await drawToLogged()
    await claimJobs(1)
    const before = await app.locks.acquire(`before ${Math.random()}`, { durability })
    await crash()
    await app.close()
    const again = openApp()
    const after = await again.locks.acquire(`after ${Math.random()}`, { durability })
    await again.close()
    return [before.fencingToken as bigint, after.fencingToken as bigint]
  }

  /**
   * The log knows of a sequence 32 values ahead. Draws those, so that the next to draw, a claim, writes the record that the
   * grant after it relies on; all up to there is on disk.
   */
  async function drawToLogged(): Promise<void> {
    for (;;) {
      const [row] = await db.sql<{ left: string }>(
        'select log_cnt::text as left from holdfast.fencing_token_seq',
      )
      if (row?.left === '0') break
      await db.sql(`select nextval('holdfast.fencing_token_seq')`)
    }
    await db.sql(
      `begin; set local synchronous_commit = on; select pg_logical_emit_message(true, 'test', ''); commit`,
    )
  }

  /** Takes a piece out of a function, for as long as `fn` runs. */
  async function without(name: string, piece: RegExp, fn: () => Promise<void>): Promise<void> {
    const [row] = await db.sql<{ text: string }>(
      `select pg_get_functiondef(p.oid) as text from pg_proc p where proname = $1`,
      [name],
    )
    const text = row?.text ?? ''
    expect(text).toMatch(piece)
    const change = async (to: string) => {
      await db.sql(to)
      await db.sql('checkpoint')
    }
    await change(text.replace(piece, ''))
    try {
      await fn()
    } finally {
      await change(text)
    }
  }

  it.each(durabilities)('leaves the token of it behind: %s', async (durability) => {
    const [before, after] = await grantAround(durability)
    expect(after).toBeGreaterThan(before)
  })

  it('would hand it out again without a record of its own (the control, ephemeral)', async () => {
    await without('acquire_lock_ephemeral', /perform pg_logical_emit_message\([^;]*;/, async () => {
      const [before, after] = await grantAround('ephemeral')
      expect(after).toBeLessThanOrEqual(before)
    })
  })

  it('would hand it out again if its commit did not wait for the disk (the control, persistent)', async () => {
    await without('acquire_lock', /perform set_config\('synchronous_commit', 'on', true\);/, async () => {
      const [before, after] = await grantAround('persistent')
      expect(after).toBeLessThanOrEqual(before)
    })
  })
})

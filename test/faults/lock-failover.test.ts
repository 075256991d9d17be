import { spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { Client } from 'pg'
import { expect, it } from 'vitest'
import { type PostgresServer, startPostgres, volatileSettings } from '../../scripts/postgres-server.ts'
import { type App, defineApp } from '../../src/index.ts'
import { createDatabase, type TestDatabase, withDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'

/** What a standby knows of locks that takes over from a primary which was killed: a real one, promoted. */

const settings = { ...volatileSettings, synchronous_commit: 'local', wal_retrieve_retry_interval: '100ms' }

/** A primary with a migrated database, and a standby that follows it. */
class Pair {
  readonly primary: PostgresServer
  readonly standby: PostgresServer
  readonly db: TestDatabase
  readonly #dir: string
  readonly #apps: App[] = []

  private constructor(primary: PostgresServer, standby: PostgresServer, db: TestDatabase, dir: string) {
    this.primary = primary
    this.standby = standby
    this.db = db
    this.#dir = dir
  }

  static async start(): Promise<Pair> {
    const primary = await startPostgres({ settings })
    const db = await createDatabase({ server: primary.url() })
    const dir = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-standby-'))
    fs.chmodSync(dir, 0o755)
    // A copy of a server that is down is a base backup that needs no program.
    await primary.halt('fast')
    spawnSync('cp', ['-a', primary.dataDir, path.join(dir, 'data')])
    fs.writeFileSync(path.join(dir, 'data/standby.signal'), '')
    fs.appendFileSync(
      path.join(dir, 'data/postgresql.auto.conf'),
      `primary_conninfo = 'host=127.0.0.1 port=${primary.port} user=postgres'\n`,
    )
    await primary.restart()
    const standby = await startPostgres({ dir, settings })
    const pair = new Pair(primary, standby, db, dir)
    await pair.follows()
    return pair
  }

  /** An application on one of the two. */
  app(on: 'primary' | 'standby'): App {
    const app = defineApp({ name: 'test', database: withDatabase(this[on].url(), this.db.name), jobs: [] })
    this.#apps.push(app)
    return app
  }

  async on(server: PostgresServer, text: string): Promise<Record<string, unknown>[]> {
    const client = new Client({ connectionString: withDatabase(server.url(), 'postgres') })
    await client.connect()
    const { rows } = await client.query<Record<string, unknown>>(text)
    await client.end()
    return rows
  }

  async follows(): Promise<void> {
    await eventually('the standby to follow', async () => {
      const [row] = await this.on(this.primary, `select state from pg_stat_replication`)
      return row?.['state'] === 'streaming'
    })
  }

  /** From now on a commit waits for the standby. */
  async synchronize(): Promise<void> {
    await this.on(this.primary, `alter system set synchronous_standby_names = '*'`)
    await this.on(this.primary, 'select pg_reload_conf()')
    await eventually('the standby to be waited for', async () => {
      const [row] = await this.on(this.primary, `select sync_state from pg_stat_replication`)
      return row?.['sync_state'] === 'sync'
    })
  }

  /** The standby hears nothing any more. */
  async part(): Promise<void> {
    await this.on(this.standby, `alter system set primary_conninfo = 'host=127.0.0.1 port=1'`)
    await this.on(this.standby, 'select pg_reload_conf()')
    await eventually('the standby to be cut off', async () => {
      return (await this.on(this.primary, `select from pg_stat_replication`)).length === 0
    })
  }

  async failOver(): Promise<void> {
    await this.primary.kill()
    await this.on(this.standby, 'select pg_promote()')
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const app of this.#apps) await app.close()
    await this.db.drop().catch(() => {})
    await this.standby.stop()
    await this.primary.stop()
    fs.rmSync(this.#dir, { recursive: true, force: true })
  }
}

it('a standby that is waited for knows every lock that was granted, whatever synchronous_commit says; cut off from it, the primary grants nothing', async () => {
  await using pair = await Pair.start()
  await pair.synchronize()
  const app = pair.app('primary')
  const persistent = await app.locks.acquire('kept', { leaseMs: 600_000 })
  const ephemeral = await app.locks.acquire('kept', { leaseMs: 600_000, durability: 'ephemeral' })
  await pair.part()
  expect((await app.locks.acquire('cut off', { waitMs: 500 })).held).toBe(false)
  await pair.failOver()

  const after = pair.app('standby')
  const { owner, fencingToken } = persistent
  expect(await after.locks.info('kept')).toMatchObject({ owner, fencingToken })
  expect((await after.locks.acquire('kept')).held).toBe(false)
  await after.transaction(async (tx) => await after.locks.assert(tx, 'kept', fencingToken as bigint))
  expect(await after.locks.info('cut off')).toBeUndefined()
  const next = await after.locks.acquire('kept', { durability: 'ephemeral' })
  expect(next.held).toBe(true)
  expect(next.fencingToken).toBeGreaterThan(ephemeral.fencingToken as bigint)
}, 120_000)

it('a standby that nobody waits for may lack the last grants, and hand their tokens out again: as the guide says', async () => {
  await using pair = await Pair.start()
  const app = pair.app('primary')
  // What the sequence has in the log, 32 ahead, is drawn first.
  for (let draw = 0; draw < 40; draw += 1) await pair.db.sql(`select nextval('holdfast.fencing_token_seq')`)
  const early = await app.locks.acquire('early')
  await eventually('the standby to have it', async () => {
    const [row] = await pair.on(
      pair.primary,
      'select replay_lsn >= pg_current_wal_lsn() as caught_up from pg_stat_replication',
    )
    return row?.['caught_up']
  })
  await pair.part()
  let last = early
  for (let grant = 0; grant < 70; grant += 1) last = await app.locks.acquire(`late ${grant}`)
  await pair.failOver()

  const after = pair.app('standby')
  expect((await after.locks.info('early'))?.fencingToken).toBe(early.fencingToken)
  expect(await after.locks.info('late 69')).toBeUndefined()
  const again = await after.locks.acquire('late 69')
  expect(again.held).toBe(true)
  expect(again.fencingToken).toBeLessThanOrEqual(last.fencingToken as bigint)
}, 120_000)

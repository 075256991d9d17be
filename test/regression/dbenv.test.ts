import { Client } from 'pg'
import { describe, expect, it } from 'vitest'
import { type App, type Durability, defineJob } from '../../src/index.ts'
import { anything, appOver, enqueueBySql, note } from '../integration/homes.ts'
import { keysRound } from '../integration/keys/round.ts'
import { scriptsRound } from '../integration/scripts/round.ts'
import { sequencesRound } from '../integration/sequences/round.ts'
import { createDatabase, openPool, type TestDatabase } from '../support/database.ts'
import { startProgram } from '../support/processes.ts'

/** Database settings under which everything has to work just as it does without them. */
const settings: Readonly<Record<string, readonly string[]>> = {
  'a search path with our names in it': ["search_path = 'evil, public'"],
  'an empty search path': ["search_path = ''"],
  'the zone of Kolkata': ["timezone = 'Asia/Kolkata'", "datestyle = 'SQL, DMY'"],
  'serializable by default': ["default_transaction_isolation = 'serializable'"],
  'repeatable read by default': ["default_transaction_isolation = 'repeatable read'"],
  'deferrable and old styles': [
    "default_transaction_deferrable = 'on'",
    "intervalstyle = 'sql_standard'",
    "bytea_output = 'escape'",
    'extra_float_digits = -15',
  ],
  'backslashes that escape': [
    "standard_conforming_strings = 'off'",
    "escape_string_warning = 'off'",
    "backslash_quote = 'on'",
  ],
  'time limits': [
    "statement_timeout = '2s'",
    "lock_timeout = '1s'",
    "idle_in_transaction_session_timeout = '5s'",
  ],
  'planner switches': [
    "enable_indexscan = 'off'",
    "enable_indexonlyscan = 'off'",
    "enable_nestloop = 'off'",
    "enable_hashjoin = 'off'",
    "plan_cache_mode = 'force_custom_plan'",
    'jit_above_cost = 0',
  ],
  'other encodings and languages': [
    "client_encoding = 'latin1'",
    "lc_messages = 'C'",
    "lc_numeric = 'C'",
    "default_text_search_config = 'pg_catalog.simple'",
  ],
  'null rules of old': ["transform_null_equals = 'on'", "array_nulls = 'off'", "xmloption = 'document'"],
}

/** Tables, functions and types of ours, and functions of PostgreSQL, under the same names elsewhere. */
const EVIL = [
  'create schema evil',
  ...[
    'job',
    'ready',
    'scheduled',
    'lease',
    'worker',
    'outcome',
    'attempt',
    'migration',
    'queue',
    'unique_key',
    'lock',
    'key_value',
    'key_change',
    'key_watcher',
    'sequence',
    'sequence_request',
  ].flatMap((table) => [`create table evil.${table} (trap int)`, `create table public.${table} (trap int)`]),
  ...['now()', 'clock_timestamp()', 'statement_timestamp()'].map(
    (name) =>
      `create function evil.${name} returns timestamptz language plpgsql as $$ begin raise exception 'trapped in ${name}'; end $$`,
  ),
  ...[
    'nextval(regclass)',
    'pg_notify(text, text)',
    'hashtextextended(text, int8)',
    'json_to_recordset(json)',
    'to_timestamp(float8)',
    'floor(numeric)',
    'sha256(bytea)',
    'set_config(text, text, bool)',
    'encode(bytea, text)',
    'starts_with(text, text)',
    'trunc(numeric)',
    'hashtext(text)',
    'pg_current_snapshot()',
    'pg_advisory_xact_lock_shared(int4, int4)',
  ].map(
    (name) =>
      `create function evil.${name} returns int8 language plpgsql as $$ begin raise exception 'trapped in ${name}'; end $$`,
  ),
  `create function evil.coalesce_job_state() returns int language sql as 'select 1'`,
  `create type evil.job_state as enum ('trap')`,
  `create function public.enqueue(text, json) returns int language plpgsql as $$ begin raise exception 'trapped'; end $$`,
]

/** One of everything: migrate, keys, every way to enqueue, claim, retry, snooze, cancel, complete. */
async function wholeRound(database: unknown, db: TestDatabase, name: string): Promise<void> {
  const runAt = new Date('2026-01-01T09:00:00.123Z')
  const late = new Date('2999-12-31T23:59:59.999Z')
  const moody = defineJob({
    name: 'moody',
    input: anything<{ how: string }>(),
    idempotent: true,
    retry: { type: 'fixed', delayMs: 1 },
    handler: (ctx, input) => {
      if (ctx.job.attempt === 1 && input.how === 'fail') throw new Error('once')
      if (input.how === 'discard') ctx.discard('no')
      return { input, at: ctx.job.scheduledAt.toISOString() }
    },
  })
  const app = appOver(database, { jobs: [moody], leaseMs: 2000 })
  try {
    await app.migrate()
    await app.migrate()
    await keysRound(app)
    await sequencesRound(app)
    await scriptsRound({ script: async (...args) => await app.script(...args) })
    const worker = app.worker()
    await worker.start()
    const weird = { how: 'é\\"\'\u20ac😀', n: [1.1, 1e21, 5e-324] }
    const [first, ...others] = await Promise.all([
      app.enqueue(moody, weird, { runAt }),
      app.enqueue(moody, { how: 'fail' }),
      app.enqueue(moody, { how: 'discard' }, { uniqueKey: "back\\slash 'quote'" }),
      app
        .enqueueMany([{ job: moody, input: { how: 'x' }, delayMs: 1, idempotencyKey: 'i\\1' }])
        .then(([answer]) => answer),
      app.transaction(async (tx) => await tx.enqueue(moody, { how: 'y' }, { uniqueKey: 'k2' })),
      enqueueBySql(
        async (text, params) => await db.sql(text, params),
        moody.name,
        '{"how":"\\u00e9 \\\\ sql"}',
        { unique_key: 'S-S' },
      ),
    ])
    expect(await app.job(first.id).wait({ timeoutMs: 20_000 }), name).toMatchObject({
      state: 'completed',
      result: { input: weird, at: runAt.toISOString() },
    })
    for (const answer of others) {
      const end = await app.job(answer?.id ?? '').wait({ timeoutMs: 20_000 })
      expect(end?.state, `${name}: ${JSON.stringify(end)}`).toMatch(/completed|discarded/)
    }
    const far = await app.enqueue(note, 1, { runAt: late, uniqueKey: 'far' })
    expect((await app.job(far.id).get())?.runAt?.toISOString()).toBe(late.toISOString())
    const bySql = await enqueueBySql(async (text, params) => await db.sql(text, params), note.name, '1', {
      delay_ms: '86400123',
    })
    const [delay] = await db.sql(
      'select round(extract(epoch from run_at - enqueued_at) * 10)::int4 as tenths from holdfast.job where id = $1',
      [bySql.id],
    )
    expect(delay).toEqual({ tenths: 864_001 })
    // Racing callers.
    const racing = await Promise.all(
      Array.from(
        { length: 20 },
        async (_, i) => await app.enqueue(note, i, { uniqueKey: 'race', delayMs: 1e6 }),
      ),
    )
    expect(new Set(racing.map(({ id }) => id)).size).toBe(1)
    expect(await app.job(far.id).cancel({ reason: 'back\\slash' })).toEqual({ status: 'cancelled' })
    expect((await app.job(far.id).get())?.reason).toBe('back\\slash')
    for (const durability of ['persistent', 'ephemeral'] as const) await lockRound(app, durability)
    await scriptRound(app)
  } finally {
    await app.close()
  }
  expect(
    await db.sql('select worker_id from holdfast.lease union all select id from holdfast.worker'),
  ).toEqual([])
}

/** A script with every kind of value, in a transaction too, and one that fails. */
async function scriptRound(app: App): Promise<void> {
  const key = `back\\slash "quote" {,} \u20ac/x`
  const script = `
    let before = get @key
    set @key to_str(0.1 + 0.2) ex 60000
    eset @key upper('stra\u00dfe \u00e9')
    let listed = get by bucket @bucket
    return [before, count(listed), get @key, eget @key, 1.0 / 0, null, to_json('\u00e9'), (2..3) == null, round(2.5, 0)]`
  const bucket = key.slice(0, -2)
  const result = await app.script(script, { key, bucket }, { tenant: `t'\\` })
  expect(result.values.map(({ value }) => Buffer.from(value).toString())).toEqual([
    '',
    '1',
    '0.30000000000000004',
    'STRA\u00dfE \u00c9',
    'Infinity',
    '',
    '"\\u00E9"',
    'false',
    '2',
  ])
  await app.transaction(async (tx) => {
    const failed = app.script('set @key 1 return 1 / 0', { key }, { tx })
    await expect(failed).rejects.toMatchObject({ reason: 'division-by-zero', line: 1 })
    expect(await app.script('get @key', { key }, { tx })).toMatchObject({ type: 'doesnotexist' })
  })
}

/** A lock from the race for its new name to its forced release. */
async function lockRound(app: App, durability: Durability): Promise<void> {
  const resource = `back\\slash 'quote' \u20ac`
  const options = { durability, tenant: `t'\\` }
  const tries = await Promise.all(
    Array.from({ length: 20 }, async () => await app.locks.acquire(resource, options)),
  )
  const [lock, ...others] = tries.filter(({ held }) => held)
  expect(others).toEqual([])
  expect(await lock?.extend(60_000)).toBe(true)
  const waiter = app.locks.acquire(resource, { ...options, waitMs: 20_000 })
  await app.transaction(
    async (tx) => await app.locks.assert(tx, resource, lock?.fencingToken as bigint, options),
  )
  expect(await lock?.release()).toBe(true)
  const next = await waiter
  expect(next).toMatchObject({ held: true, fencingToken: expect.any(BigInt) })
  expect(next.fencingToken).toBeGreaterThan(lock?.fencingToken as bigint)
  const info = await app.locks.info(resource, options)
  expect(info).toMatchObject({ resource, owner: next.owner, expiresAt: next.expiresAt })
  expect((info?.expiresAt.getTime() ?? 0) - (info?.acquiredAt.getTime() ?? 0)).toBe(30_000)
  expect((await app.locks.list(options)).locks).toEqual([info])
  const taken = await app.locks.forceRelease(resource, { ...options, actor: 'me', reason: `it's \\ over` })
  expect(taken).toEqual({ owner: next.owner, fencingToken: next.fencingToken })
  await expect(
    app.transaction(async (tx) => await app.locks.assert(tx, resource, next.fencingToken as bigint, options)),
  ).rejects.toMatchObject({ code: 'LOCK_LOST', resource })
}

describe('under any settings of the database', () => {
  it.each(Object.entries(settings))(
    'everything works, from an empty database, with %s',
    async (name, list) => {
      await using db = await createDatabase({ migrated: false })
      for (const statement of EVIL) await db.sql(statement)
      // A list of names, unlike one text, is written without quotes.
      for (const setting of list)
        await db.sql(`alter database ${db.name} set ${setting.replace(/'(evil.*)'$/, '$1')}`)
      await wholeRound(db.url, db, name)
    },
  )

  it('everything works with a search path that hides functions of PostgreSQL', async () => {
    await using db = await createDatabase({ migrated: false })
    for (const statement of EVIL) await db.sql(statement)
    await db.sql(`alter database ${db.name} set search_path = evil, pg_catalog`)
    await wholeRound(db.url, db, 'hidden functions')
  })

  it.each(['serializable', 'repeatable read'])(
    "works over a pool of the user's own, with %s by default",
    async (level) => {
      await using db = await createDatabase({ migrated: false })
      await db.sql(`alter database ${db.name} set default_transaction_isolation = '${level}'`)
      const pool = openPool({ connectionString: db.url, max: 10 })
      pool.on('error', () => {})
      try {
        await wholeRound(pool, db, level)
        // The settings of the user's connections are the user's: they come back as they went.
        const clients = await Promise.all(Array.from({ length: 10 }, async () => await pool.connect()))
        for (const client of clients) {
          const { rows } = await client.query('show default_transaction_isolation')
          expect(rows).toEqual([{ default_transaction_isolation: level }])
          client.release()
        }
      } finally {
        await pool.end()
      }
    },
  )
})

/** Row 48. */
describe('a process in another zone than its database', () => {
  it('reads back the instant it gave, and starts what is due by the clock of the database', async () => {
    await using db = await createDatabase()
    await db.sql(`alter database ${db.name} set timezone = 'Asia/Kolkata'`)
    await using program = startProgram('test/regression/programs/zone.ts', {
      args: [db.url],
      env: { TZ: 'America/Los_Angeles' },
    })
    const { readBack, offset, states } = await program.message('done')
    expect(offset).not.toBe(0)
    expect(readBack).toBe('2026-01-01T09:00:00.000Z')
    expect(states).toEqual(['completed', 'scheduled'])
  })
})

/** Row 47. */
describe('a pool smaller than the work', () => {
  it('loses no lease and runs every job once: two connections, twenty at a time, a hundred jobs with a child each', async () => {
    await using db = await createDatabase()
    const runs = new Map<string, number>()
    const child = defineJob({
      name: 'child',
      queue: 'mail',
      input: anything(),
      idempotent: true,
      handler: () => {},
    })
    const parent = defineJob({
      name: 'parent',
      input: anything<number>(),
      idempotent: true,
      handler: async (ctx, n) => {
        runs.set(ctx.job.id, (runs.get(ctx.job.id) ?? 0) + 1)
        await app.transaction(async (tx) => await tx.enqueue(child, n))
        await new Promise((resolve) => setTimeout(resolve, 1500))
      },
    })
    const app = appOver(db.url, {
      jobs: [child, parent],
      queues: { default: { concurrency: 20 } },
      leaseMs: 1000,
      maxConnections: 2,
    })
    const lost: unknown[] = []
    app.events.on('lease.lost', (event) => void lost.push(event))
    try {
      const jobs = await app.enqueueMany(Array.from({ length: 100 }, (_, i) => ({ job: parent, input: i })))
      await app.worker().start()
      for (const { id } of jobs)
        expect(await app.job(id).wait({ timeoutMs: 30_000 })).toMatchObject({
          state: 'completed',
          attempts: 1,
        })
      expect([...runs.values()].every((n) => n === 1)).toBe(true)
      expect(await db.sql(`select from holdfast.job where name = 'child'`)).toHaveLength(100)
      expect(lost).toEqual([])
    } finally {
      await app.close()
    }
  })
})

/** DBE-3. */
describe('a handler that runs', () => {
  it('holds no connection and no transaction', async () => {
    await using db = await createDatabase()
    let seen: unknown[] = []
    const looking = defineJob({
      name: 'looking',
      input: anything(),
      idempotent: true,
      handler: async () => {
        const client = new Client({ connectionString: db.url })
        await client.connect()
        // Our sessions are between statements, not in a transaction.
        await new Promise((resolve) => setTimeout(resolve, 300))
        seen = (
          await client.query(
            `select state from pg_stat_activity where datname = current_database() and application_name like 'holdfast%' and xact_start is not null and state <> 'active'`,
          )
        ).rows
        await client.end()
      },
    })
    const app = appOver(db.url, { jobs: [looking] })
    try {
      const { id } = await app.enqueue(looking, 1)
      await app.worker().start()
      expect(await app.job(id).wait({ timeoutMs: 20_000 })).toMatchObject({ state: 'completed' })
      expect(seen).toEqual([])
    } finally {
      await app.close()
    }
  })
})

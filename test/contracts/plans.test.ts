import type { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { listDoubtfulEffects } from '../../src/admin/sql/list-effects.ts'
import { type Database, type Params, type ParamType, run } from '../../src/driver/operation.ts'
import { beginEffect } from '../../src/effects/sql/begin-effect.ts'
import { endEffect } from '../../src/effects/sql/end-effect.ts'
import { findEffect } from '../../src/effects/sql/find-effect.ts'
import { recordEffect } from '../../src/effects/sql/record-effect.ts'
import { claimFewJobs } from '../../src/jobs/sql/claim-few-jobs.ts'
import { claimJobs } from '../../src/jobs/sql/claim-jobs.ts'
import { closeLeases } from '../../src/jobs/sql/close-leases.ts'
import { enqueueAlikeJobs } from '../../src/jobs/sql/enqueue-alike-jobs.ts'
import { enqueueJobs } from '../../src/jobs/sql/enqueue-jobs.ts'
import { enqueueKeyedJobs } from '../../src/jobs/sql/enqueue-keyed-jobs.ts'
import { findOutcome } from '../../src/jobs/sql/find-outcome.ts'
import { findReadyBehind } from '../../src/jobs/sql/find-ready-behind.ts'
import { lockLostLeases } from '../../src/jobs/sql/lock-lost-leases.ts'
import { lookAhead } from '../../src/jobs/sql/look-ahead.ts'
import { promoteJobs } from '../../src/jobs/sql/promote-jobs.ts'
import { releaseUnknownLeases } from '../../src/jobs/sql/release-unknown-leases.ts'
import { renewLeases } from '../../src/jobs/sql/renew-leases.ts'
import { requeueLostLeases } from '../../src/jobs/sql/requeue-lost-leases.ts'
import { saveCheckpoint } from '../../src/jobs/sql/save-checkpoint.ts'
import { saveProgress } from '../../src/jobs/sql/save-progress.ts'
import { settleAttempts } from '../../src/jobs/sql/settle-attempts.ts'
import { settleAndClaim, settleCompleted } from '../../src/jobs/sql/settle-completed.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { type AnyOperation, readOperations } from './operations.ts'

/**
 * The hot statements over a million ready, a million scheduled and a million finished jobs: with the plans that a
 * session made while the tables were empty and has kept, and with plans made now from the statistics of empty
 * tables. Each runs, and is rolled back: it reads no large table from end to end, goes by the indexes that are
 * there for it, and touches pages in proportion to the jobs it is about.
 */

const MILLION = 1_000_000
const READY_FROM = 1
const SCHEDULED_FROM = MILLION + 1
const FINISHED_FROM = 2 * MILLION + 1
const EXECUTING_FROM = 3 * MILLION + 1
const BATCH = 400

/** A worker's session has these settings (`adapters/pg.ts`); a producer's connection may be anybody's pool. */
const settings = {
  worker: ['plan_cache_mode = force_generic_plan', 'enable_seqscan = off', 'enable_bitmapscan = off'],
  producer: ['plan_cache_mode = force_generic_plan'],
} as const

type Role = keyof typeof settings
type When = 'kept since the tables were empty' | 'made now'

let db: TestDatabase
let client: Client
const connections = new Map<string, Client>()

beforeAll(async () => {
  db = await createDatabase()
  client = await db.connect()
  await client.query(`select setval('holdfast.job_seq', ${EXECUTING_FROM + 10_000})`)
  await client.query('select holdfast.ensure_partitions()')
  // Partitions stay as they are when statistics are gathered: empty. A plan lives until then.
  await client.query(`do $$ declare t regclass; begin
    for t in select oid::regclass from pg_class where relnamespace = 'holdfast'::regnamespace and relkind = 'r' loop
      execute format('alter table %s set (autovacuum_enabled = false)', t);
    end loop; end $$`)
  await client.query('analyze')
  for (const role of ['worker', 'producer'] as const) {
    for (const when of ['kept since the tables were empty', 'made now'] as const) {
      const connection = await db.connect()
      for (const setting of settings[role]) await connection.query(`set ${setting}`)
      // One bad plan shows in its own test alone.
      await connection.query(`set statement_timeout = '10s'`)
      connections.set(`${role} ${when}`, connection)
      if (when === 'made now') continue
      for (const { operation } of await readOperations()) await plan(connection, operation)
      await planInside(connection)
    }
  }
  await fill()
}, 300_000)

/** The statements inside functions keep their plans too: has them made by calls that are rolled back. */
async function planInside(connection: Client): Promise<void> {
  const item = { n: 'job 1', q: 'default', p: 0, m: 20, i: 1, u: 'u', k: 'k', e: 1e6 }
  await connection.query('begin')
  for (let call = 0; call < 10; call += 1) {
    await connection.query('select holdfast.enqueue_alike_jobs($1, $2)', [
      JSON.stringify({ ...item, in: call % 2 ? 1e6 : 0 }),
      '[1, 2]',
    ])
    await connection.query('select holdfast.enqueue_jobs($1)', [
      JSON.stringify([{ ...item, in: call % 2 ? 1e6 : 0 }]),
    ])
    await connection.query('select holdfast.enqueue_keyed_jobs($1)', [
      JSON.stringify([item, { ...item, k: `${call}` }]),
    ])
  }
  await connection.query('rollback')
}

/** Has the generic plan made, and kept. */
async function plan(connection: Client, operation: AnyOperation): Promise<void> {
  await connection.query(`prepare ${operation.name} as ${operation.statement('holdfast').text}`)
  const args = Object.keys(operation.params).map(() => 'null')
  await connection.query(`explain execute ${operation.name}${args.length > 0 ? `(${args.join(', ')})` : ''}`)
}

afterAll(async () => {
  await db.drop()
})

async function fill(): Promise<void> {
  const jobs = (from: number, count: number) =>
    `insert into holdfast.job (id, enqueued_at, priority, max_attempts, name, queue, tenant, contract, input)
     select i, now(), i % 3, 20, 'job ' || i % 20, case when i % 10 = 0 then 'mail' else 'default' end, '', 'c', '{"n":1}'
     from generate_series(${from}, ${from + count - 1}) i`
  await client.query('set synchronous_commit = off')
  await client.query(jobs(READY_FROM, MILLION))
  await client.query(`insert into holdfast.ready (seq, job_id, priority, attempts, crashes, care, queue)
    select id, id, priority, 0, 0, case when id % 1000 = 0 then 1 else 0 end, queue from holdfast.job where id < ${SCHEDULED_FROM}`)
  await client.query(jobs(SCHEDULED_FROM, MILLION))
  await client.query(`insert into holdfast.scheduled (run_at, job_id, priority, attempts, crashes, retrying, queue)
    select now() + ((i - ${SCHEDULED_FROM + 1000}) * interval '1 second'), i, i % 3, 0, 0, false, 'default'
    from generate_series(${SCHEDULED_FROM}, ${SCHEDULED_FROM + MILLION - 1}) i`)
  await client.query(jobs(FINISHED_FROM, MILLION))
  await client.query(`insert into holdfast.outcome (job_id, token, finished_at, attempts, state)
    select i, i, now(), 1, 'completed' from generate_series(${FINISHED_FROM}, ${FINISHED_FROM + MILLION - 1}) i`)
  await client.query(`insert into holdfast.attempt (job_id, token, ended_at, attempt, ended)
    select i, i - ${MILLION}, now(), 1, 'failed' from generate_series(${FINISHED_FROM}, ${FINISHED_FROM + 300_000}) i`)
  // Also among those that execute, whose partition a settle looks into; the first lease has had many of its jobs back.
  await client.query(`insert into holdfast.attempt (job_id, token, ended_at, attempt, ended)
    select ${EXECUTING_FROM + 10_000} + i, i, now(), 1, 'failed' from generate_series(1, 300000) i`)
  await client.query(`insert into holdfast.attempt (job_id, token, ended_at, attempt, ended)
    select ${EXECUTING_FROM} + i, ${5 * MILLION} + 1, now(), 1, 'failed' from generate_series(${BATCH}, ${BATCH * 1.5 - 1}) i`)
  await client.query(`insert into holdfast.unique_key (job_id, tenant, name, key)
    select i, '', 'job 1', 'key ' || i from generate_series(1, 300000) i`)
  await client.query(`insert into holdfast.idempotency_key (job_id, expires_at, tenant, key, status)
    select i, now() + interval '1 day', '', 'call ' || i, 'created' from generate_series(1, 300000) i`)
  await client.query(`insert into holdfast.effect (tenant, name, key, state, call, calls, job_id, token, ended_at)
    select '', 'send:email', 'key ' || i, case when i % 1000 = 0 then 'uncertain'::holdfast.effect_state else 'happened' end,
      gen_random_uuid(), 1, i, i, now() from generate_series(1, 300000) i`)
  await client.query(
    `insert into holdfast.checkpoint (job_id, token, value) select i, i, '1' from generate_series(1, 300000) i`,
  )
  await client.query(jobs(EXECUTING_FROM, 3 * BATCH))
  await client.query(`insert into holdfast.worker (id, lease_ms, name, app, version, queues, jobs, heartbeat_at)
    select i, 30000, 'w', 'a', '1', '[]', '[]', case when i = 2 then now() - interval '1 hour' else now() + interval '1 hour' end
    from generate_series(1, 20) i`)
  await client.query(`insert into holdfast.lease (token, worker_id, job_ids, seqs)
    select ${5 * MILLION} + n, case when n = 2 then 2 else 1 end, array_agg(i), array_agg(i)
    from generate_series(0, 2) n, generate_series(${EXECUTING_FROM} + n * ${BATCH}, ${EXECUTING_FROM} + n * ${BATCH} + ${BATCH - 1}) i group by n`)
}

interface Explained {
  /** Pages that were touched, in shared buffers or not. */
  readonly pages: number
  /** Rows of large tables that were read by going through the whole table. */
  readonly scanned: Readonly<Record<string, number>>
  readonly indexes: readonly string[]
}

interface PlanNode {
  readonly 'Node Type': string
  readonly 'Index Name'?: string
  readonly 'Shared Hit Blocks': number
  readonly 'Shared Read Blocks': number
  readonly Plans?: readonly PlanNode[]
}

/** Runs the operation under `explain`, in a transaction that is rolled back. */
async function explain<P extends Record<string, ParamType>>(
  operation: { readonly params: P } & Pick<AnyOperation, 'statement' | 'name'>,
  params: Record<keyof P, unknown>,
  when: When,
  role: Role = 'worker',
): Promise<Explained> {
  const connection = connections.get(`${role} ${when}`) as Client
  const values: (string | null)[] = []
  const capture: Database = {
    schema: 'holdfast',
    prepare: true,
    queryable: {
      async query(_text, sent) {
        values.push(...sent)
        return []
      },
    },
  }
  await run(capture, operation as unknown as AnyOperation, params as Params<AnyOperation>)
  const args = values.map((value) => (value === null ? 'null' : client.escapeLiteral(value))).join(', ')
  if (when === 'made now') await plan(connection, operation as unknown as AnyOperation)
  await connection.query('begin')
  try {
    const before = await scans(connection)
    const execute = `execute ${operation.name}${args === '' ? '' : `(${args})`}`
    if (process.env['HOLDFAST_SHOW_PLANS'] !== undefined) {
      const shown = await connection.query<{ 'QUERY PLAN': string }>(`explain (costs off) ${execute}`)
      console.log(shown.rows.map((row) => row['QUERY PLAN']).join('\n'))
    }
    const { rows } = await connection.query<{ 'QUERY PLAN': [{ Plan: PlanNode }] }>(
      `explain (analyze, buffers, timing off, format json) ${execute}`,
    )
    const top = rows[0]?.['QUERY PLAN'][0].Plan as PlanNode
    const after = await scans(connection)
    return {
      pages: top['Shared Hit Blocks'] + top['Shared Read Blocks'],
      scanned: Object.fromEntries(
        [...after]
          .filter(([name, n]) => n > (before.get(name) ?? 0))
          .map(([name, n]) => [name, n - (before.get(name) ?? 0)]),
      ),
      indexes: [...new Set(indexesOf(top))].sort(),
    }
  } finally {
    await connection.query('rollback')
    if (when === 'made now') await connection.query('deallocate all')
  }
}

/** Rows of large tables that this connection has read by going through them, with what is not reported yet. */
async function scans(connection: Client): Promise<ReadonlyMap<string, number>> {
  const { rows } = await connection.query<{ name: string; n: string }>(
    `select relname as name, seq_tup_read as n from pg_stat_xact_user_tables
     where schemaname = 'holdfast' and relname ~ '^((job|outcome|attempt)(_\\d.*|_archive.*)?|ready|scheduled|unique_key|idempotency_key|parked|effect|checkpoint)$'`,
  )
  return new Map(rows.map(({ name, n }) => [name, Number(n)]))
}

function indexesOf(node: PlanNode): string[] {
  const own = node['Index Name'] === undefined ? [] : [node['Index Name']]
  return [...own, ...(node.Plans ?? []).flatMap(indexesOf)]
}

const upTo = (from: number, count: number) => Array.from({ length: count }, (_, i) => String(from + i))
const PRIORITIES = Array.from({ length: 10 }, (_, priority) => priority)
const END = String(2n ** 62n)

function claim(wanted: number, after = '0') {
  const queues = ['default', 'mail']
  return {
    workerId: '1',
    queues,
    wanted: [wanted, 10],
    free: [10, 10],
    classQueues: queues.flatMap((queue) => PRIORITIES.map(() => queue)),
    classPriorities: queues.flatMap(() => PRIORITIES),
    lastPriorities: queues.flatMap(() => PRIORITIES),
    after: queues.flatMap(() => PRIORITIES.map(() => after)),
    upto: queues.flatMap(() => PRIORITIES.map(() => END)),
    suspects: true,
  }
}

function settle(count: number) {
  return {
    workerId: '1',
    tokens: [String(5 * MILLION)],
    jobIds: upTo(EXECUTING_FROM, count),
    leases: upTo(0, count).map(() => 1),
    places: upTo(0, count).map((_, i) => i + 1),
    durationsMs: upTo(0, count).map(() => 5),
    results: upTo(0, count).map(() => '{"ok":true}'),
    keyedIds: upTo(EXECUTING_FROM, Math.min(10, count)),
  }
}

describe.each(['kept since the tables were empty', 'made now'] as const)(
  'over a million jobs in every state, with plans %s,',
  (when) => {
    it('nothing was analysed since', async () => {
      const { rows } = await client.query(
        `select relname, reltuples from pg_class where relnamespace = 'holdfast'::regnamespace and relkind = 'r' and reltuples > 100`,
      )
      expect(rows).toEqual([])
      const { rows: counts } = await client.query(
        `select (select count(*)::int4 from holdfast.ready) as ready, (select count(*)::int4 from holdfast.scheduled) as scheduled,
         (select count(*)::int4 from holdfast.outcome) as finished`,
      )
      expect(counts).toEqual([{ ready: MILLION, scheduled: MILLION, finished: MILLION }])
    })

    it.each([1, BATCH])(
      'claim_jobs takes %i by the index of the queue and the key of the job',
      async (wanted) => {
        const { pages, scanned, indexes } = await explain(claimJobs, claim(wanted), when)
        expect(scanned).toEqual({})
        expect(indexes).toContain('ready_claim_idx')
        expect(indexes.join()).toMatch(/\bjob_\w*pkey/)
        expect(pages).toBeLessThan(500 + 25 * wanted)
      },
    )

    it('claim_few_jobs takes its own by the same indexes', async () => {
      const { pages, scanned, indexes } = await explain(
        claimFewJobs,
        { workerId: '1', queue: 'default', limit: 10 },
        when,
      )
      expect(scanned).toEqual({})
      expect(indexes).toContain('ready_claim_idx')
      expect(indexes.join()).toMatch(/\bjob_\w*pkey/)
      expect(pages).toBeLessThan(750)
    })

    it('close_leases ends them by their tokens', async () => {
      const tokens = [0, 1, 2].map((lease) => String(5 * MILLION + lease))
      const { pages, scanned, indexes } = await explain(closeLeases, { workerId: '1', tokens }, when)
      expect(scanned).toEqual({})
      expect(indexes).toContain('lease_pkey')
      expect(pages).toBeLessThan(500 + 30 * BATCH * tokens.length)
    })

    it('claim_jobs from the middle of the queue costs what it costs at the front', async () => {
      const front = await explain(claimJobs, claim(100), when)
      const middle = await explain(claimJobs, claim(100, String(MILLION / 2)), when)
      expect(middle.scanned).toEqual({})
      expect(middle.pages).toBeLessThan(front.pages * 1.5 + 100)
    })

    it('claim_jobs of queues with nothing in them costs next to nothing', async () => {
      const empty = {
        ...claim(BATCH),
        queues: ['none', 'nothing'],
        classQueues: claim(1).classQueues.map(() => 'none'),
      }
      const { pages, scanned } = await explain(claimJobs, empty, when)
      expect(scanned).toEqual({})
      expect(pages).toBeLessThan(200)
    })

    it.each([1, BATCH])('settle_completed records %i by keys', async (count) => {
      const { pages, scanned, indexes } = await explain(settleCompleted, settle(count), when)
      expect(scanned).toEqual({})
      expect(indexes).toContain('lease_pkey')
      expect(pages).toBeLessThan(500 + 30 * count)
    })

    it('settle_and_claim does both by the same indexes', async () => {
      const { pages, scanned, indexes } = await explain(
        settleAndClaim,
        { ...settle(BATCH), ...claim(BATCH) },
        when,
      )
      expect(scanned).toEqual({})
      expect(indexes).toEqual(expect.arrayContaining(['lease_pkey', 'ready_claim_idx']))
      expect(pages).toBeLessThan(1000 + 55 * BATCH)
    })

    it.each([1, BATCH])('settle_attempts records %i by keys', async (count) => {
      const kinds = [
        { to: 'scheduled', ended: 'failed', delay: 1000, error: { message: 'x' } },
        { to: 'scheduled', ended: 'snoozed', delay: 1000 },
        { to: 'ready', ended: 'handed-back' },
        { to: 'discarded', reason: 'x' },
        { to: 'parked', ended: 'parked', reason: 'x' },
        { to: 'completed', result: 1 },
      ]
      const items = upTo(EXECUTING_FROM, count).map((job, i) => ({
        token: String(5 * MILLION),
        job,
        ms: 1,
        ...kinds[i % kinds.length],
      }))
      const { pages, scanned, indexes } = await explain(
        settleAttempts,
        {
          workerId: '1',
          tokens: [String(5 * MILLION)],
          items: JSON.stringify(items),
          keep: 20,
        },
        when,
      )
      expect(scanned).toEqual({})
      expect(indexes).toContain('lease_pkey')
      expect(pages).toBeLessThan(500 + 50 * count)
    })

    it.each(['settle_completed', 'settle_attempts'])(
      '%s costs no more for a lease of which half is settled',
      async (name) => {
        const token = String(5 * MILLION + 1)
        const jobs = upTo(EXECUTING_FROM + BATCH * 1.5, BATCH / 2)
        const items = jobs.map((job) => ({ token, job, ms: 1, to: 'scheduled', ended: 'failed', delay: 1 }))
        const { pages, scanned } =
          name === 'settle_attempts'
            ? await explain(
                settleAttempts,
                { workerId: '1', tokens: [token], items: JSON.stringify(items), keep: 20 },
                when,
              )
            : await explain(
                settleCompleted,
                {
                  ...settle(BATCH / 2),
                  tokens: [token],
                  jobIds: jobs,
                  leases: jobs.map(() => 1),
                  places: jobs.map((_, i) => BATCH / 2 + i + 1),
                  keyedIds: [],
                },
                when,
              )
        expect(scanned).toEqual({})
        expect(pages).toBeLessThan(1500 + 50 * jobs.length)
      },
    )

    it('promote_jobs moves the longest due, by the index of due times', async () => {
      const { pages, scanned, indexes } = await explain(promoteJobs, { limit: 500 }, when)
      expect(scanned).toEqual({})
      expect(indexes).toContain('scheduled_due_idx')
      expect(pages).toBeLessThan(500 + 30 * 500)
    })

    it('look_ahead reads one entry of each index', async () => {
      const names = upTo(0, 20).map((n) => `job ${n}`)
      const { pages, scanned, indexes } = await explain(
        lookAhead,
        { workerId: '1', names, queues: ['default', 'mail', 'none'] },
        when,
      )
      expect(scanned).toEqual({})
      expect(indexes).toContain('scheduled_due_idx')
      expect(pages).toBeLessThan(200)
    })

    it('find_ready_behind reads one entry of the index of the queue', async () => {
      const { pages, scanned, indexes } = await explain(
        findReadyBehind,
        { queue: 'default', priority: 1, after: '500000', upto: '900000' },
        when,
      )
      expect(scanned).toEqual({})
      expect(indexes).toEqual(['ready_claim_idx'])
      expect(pages).toBeLessThan(20)
    })

    it('lock_lost_leases and requeue_lost_leases cost what was lost', async () => {
      const lock = await explain(lockLostLeases, { limit: 100 }, when)
      expect(lock.scanned).toEqual({})
      expect(lock.pages).toBeLessThan(200)
      const requeue = await explain(
        requeueLostLeases,
        { tokens: [String(5 * MILLION + 2)], workerIds: ['2'], backoffMs: '1000' },
        when,
      )
      expect(requeue.scanned).toEqual({})
      expect(requeue.pages).toBeLessThan(500 + 40 * BATCH)
    })

    it('release_unknown_leases costs what it gives back', async () => {
      const { pages, scanned } = await explain(
        releaseUnknownLeases,
        { workerId: '1', known: [String(5 * MILLION)] },
        when,
      )
      expect(scanned).toEqual({})
      expect(pages).toBeLessThan(500 + 40 * BATCH)
    })

    it('renew_leases touches its own row and leases', async () => {
      const { pages, scanned } = await explain(renewLeases, { workerId: '1' }, when)
      expect(scanned).toEqual({})
      expect(pages).toBeLessThan(100)
    })

    it('find_outcome reads one row by its key', async () => {
      for (const jobId of [FINISHED_FROM + 500_000, READY_FROM + 5, 9 * MILLION]) {
        // A producer's connection has no fixed plans: one that was made for empty tables lasts there until they are analysed.
        const { pages, scanned } = await explain(
          findOutcome,
          { jobId: String(jobId) },
          when,
          when === 'made now' ? 'producer' : 'worker',
        )
        expect(scanned).toEqual({})
        expect(pages).toBeLessThan(60)
      }
    })

    it('enqueue_jobs costs what it stores', async () => {
      const items = upTo(0, BATCH).map((i) => ({
        n: 'job 1',
        q: 'default',
        p: 0,
        m: 20,
        c: 'c',
        i,
        ...(Number(i) % 2 ? { in: 1e6 } : {}),
      }))
      const { pages, scanned } = await explain(
        enqueueJobs,
        { items: JSON.stringify(items) },
        when,
        'producer',
      )
      expect(scanned).toEqual({})
      expect(pages).toBeLessThan(1000 + 30 * BATCH)
    })

    it('enqueue_alike_jobs costs what it stores', async () => {
      const head = JSON.stringify({ n: 'job 1', q: 'default', p: 0, m: 20, c: 'c' })
      const inputs = JSON.stringify(upTo(0, BATCH))
      const { pages, scanned } = await explain(enqueueAlikeJobs, { head, inputs }, when, 'producer')
      expect(scanned).toEqual({})
      expect(pages).toBeLessThan(1000 + 30 * BATCH)
    })

    it('enqueue_keyed_jobs looks each key up by its index', async () => {
      const items = upTo(0, 100).map((i) => ({
        n: 'job 1',
        q: 'default',
        p: 0,
        m: 20,
        c: 'c',
        i,
        u: `key ${Number(i) % 2 ? '' : 'new '}${Number(i) * 1000}`,
        ...(Number(i) % 3 ? { k: `call ${Number(i) % 6 > 2 ? '' : 'new '}${Number(i) * 1000}`, e: 1e6 } : {}),
      }))
      const { pages, scanned } = await explain(
        enqueueKeyedJobs,
        { items: JSON.stringify(items) },
        when,
        'producer',
      )
      expect(scanned).toEqual({})
      expect(pages).toBeLessThan(1000 + 100 * 60)
    })

    it('a statement without its index is seen to read the table', async () => {
      // The control: without it, the numbers above would prove nothing.
      await client.query('begin')
      try {
        await client.query('drop index holdfast.scheduled_due_idx')
        await client.query('set local enable_seqscan = off')
        await client.query(`prepare control as ${promoteJobs.statement('holdfast').text}`)
        await client.query(`execute control('10')`)
        const { rows } = await client.query(
          `select seq_tup_read::int4 as n from pg_stat_xact_user_tables where relname = 'scheduled'`,
        )
        expect(rows).toEqual([{ n: expect.any(Number) }])
        expect(rows[0].n).toBeGreaterThanOrEqual(MILLION)
      } finally {
        await client.query('rollback')
        await client.query('deallocate all')
      }
    })
  },
)

/** They are never prepared (`App`), so the plan that counts is the one made now. Small partitions may be read whole. */
describe('over 300,000 effects and checkpoints', () => {
  const large = (scanned: Explained['scanned']) =>
    Object.entries(scanned).filter(([, rows]) => rows > 2 * 1201)

  it.each<AnyOperation>([
    beginEffect,
    recordEffect,
    endEffect,
    findEffect,
    saveCheckpoint,
    saveProgress,
  ] as never[])('$name goes by keys', async (operation) => {
    const attempt = { workerId: '1', token: String(5 * MILLION), jobId: String(EXECUTING_FROM), place: 1 }
    const effect = { tenant: '', name: 'send:email', key: 'key 7000' }
    const call = '00000000-0000-4000-8000-000000000000'
    const written = { call, takes: null, refuted: false, notHappened: false, error: '{}', result: '1' }
    const params = { ...attempt, ...effect, ...written, value: '1', fraction: 0.5, note: null }
    const { pages, scanned } = await explain(operation, params, 'made now', 'producer')
    expect(large(scanned)).toEqual([])
    expect(pages).toBeLessThan(300)
  })

  it('list_doubtful_effects reads what waits for a decision, and not the ledger', async () => {
    const start = { afterMicros: '-1', afterTenant: '', afterName: '', afterKey: '', limit: 51 }
    const { pages, scanned, indexes } = await explain(listDoubtfulEffects, start, 'made now', 'producer')
    expect(large(scanned)).toEqual([])
    expect(indexes).toContain('effect_doubtful_idx')
    expect(pages).toBeLessThan(1000)
  })
})

import { Client } from 'pg'
import { startPostgres } from '../scripts/postgres-server.ts'
import { defineApp, defineJob, type JobContext, resource } from '../src/index.ts'
import { startProxy } from '../test/support/proxy.ts'
import { machine } from './machine.ts'
import { SETTINGS } from './measure/bench.ts'
import { median } from './measure/statistics.ts'

/**
 * `npx tsx bench/effects.ts [count] [rounds]`: what the ledger costs, beside as many bare statements in a loop. One call after the
 * other, on a private PostgreSQL with default durability: time in milliseconds, statements (round trips) and commits of each.
 */
const count = Number(process.argv[2] ?? 300)
const rounds = Number(process.argv[3] ?? 3)

type Act = (n: number, ctx: JobContext<object, 'call:x'>) => Promise<unknown>

interface Counted {
  readonly ms: number
  readonly statements: number
  readonly commits: number
}

const anything = {
  '~standard': { version: 1 as const, vendor: 'bench', validate: (value: unknown) => ({ value }) },
}
await using server = await startPostgres({ settings: SETTINGS })
const admin = new Client({ connectionString: server.url() })
await admin.connect()
await admin.query('create database bench')
const url = server.url('bench')
await using proxy = await startProxy(url)
const raw = new Client({ connectionString: url })
await raw.connect()
await raw.query('create table bare (n int, k text)')

let act: Act = async () => {}
let ended: (counted: Counted) => void = () => {}
const outside = resource({ name: 'outside', provides: ['call:x'], create: () => null })
const job = defineJob({
  name: 'bench',
  input: anything,
  effects: ['call:x'],
  uses: { outside },
  idempotent: true,
  async handler(ctx) {
    await act(-1, ctx)
    const before = await counts()
    for (let n = 0; n < count; n += 1) await act(n, ctx)
    ended(await since(before, count))
  },
})
/** One commit for each job, so each is timed by itself. */
let commitMs = 0
const committing = defineJob({
  name: 'commit',
  input: anything,
  idempotent: true,
  async handler(ctx) {
    const startMs = performance.now()
    await ctx.commit(async (tx) => await tx.query('insert into bare values (1)'))
    commitMs += performance.now() - startMs
  },
})
// Through a proxy that counts; a long poll and lease keep the worker's own statements few.
const app = defineApp({
  name: 'bench',
  database: proxy.url(),
  jobs: [job, committing],
  leaseMs: 3_600_000,
  maxPollMs: 3_600_000,
})
await app.migrate()
await app.worker().start()

/** Transactions that write have an id each; so has this question. */
async function counts(): Promise<Counted> {
  const { rows } = await raw.query<{ id: string }>('select pg_current_xact_id()::text as id')
  return { ms: performance.now(), statements: proxy.counts.statements, commits: Number(rows[0]?.id) }
}

async function since(before: Counted, of: number): Promise<Counted> {
  const ms = performance.now() - before.ms
  const statements = proxy.counts.statements - before.statements
  const { commits } = await counts()
  return { ms: ms / of, statements: statements / of, commits: (commits - before.commits - 1) / of }
}

async function measure(what: Act): Promise<Counted> {
  act = what
  const done = new Promise<Counted>((resolve) => {
    ended = resolve
  })
  await app.enqueue(job, null)
  return await done
}

async function measureCommits(): Promise<Counted> {
  commitMs = 0
  for (let n = 0; n < count; n += 1) {
    const { id } = await app.enqueue(committing, null)
    await app.job(id).wait()
  }
  return { ms: commitMs / count, statements: 5, commits: 1 }
}

/** The same number of bare statements, by the same proxy. */
const through = new Client({ connectionString: proxy.url() })
await through.connect()
const insert = async () => await through.query(`insert into bare values ($1, $2)`, [1, 'k'])

let run = 0
const cases: readonly (readonly [string, () => Promise<Counted>])[] = [
  ['one bare insert', async () => await measure(insert)],
  ['two bare inserts', async () => await measure(async () => (await insert(), await insert()))],
  [
    'bare transaction: begin, select, insert, insert, commit',
    async () =>
      await measure(async () => {
        for (const text of ['begin', 'select 1']) await through.query(text)
        await insert()
        await insert()
        await through.query('commit')
      }),
  ],
  [
    'ctx.effect, performed',
    async () => await measure(async (n, ctx) => await ctx.effect('call:x', { key: `${run}:${n}` }, () => n)),
  ],
  [
    'ctx.effect, already known',
    async () => await measure(async (_, ctx) => await ctx.effect('call:x', { key: `${run}:0` }, () => 0)),
  ],
  [
    'ctx.transaction with one insert',
    async () =>
      await measure(
        async (_, ctx) => await ctx.transaction(async (tx) => await tx.query('insert into bare values (1)')),
      ),
  ],
  ['ctx.commit with one insert', measureCommits],
  ['ctx.checkpoint', async () => await measure(async (n, ctx) => await ctx.checkpoint(n))],
  [
    'app.effect, performed',
    async () => await measure(async (n) => await app.effect('call:y', { key: `${run}:${n}` }, () => n)),
  ],
]

const results = new Map<string, Counted[]>()
for (run = 0; run < rounds; run += 1)
  for (const [name, measured] of cases) {
    const one = await measured()
    results.set(name, [...(results.get(name) ?? []), one])
  }
console.log(JSON.stringify({ ...machine(), count, rounds }))
console.log('| | ms | statements | commits |\n| --- | --- | --- | --- |')
for (const [name, all] of results) {
  const of = (pick: (counted: Counted) => number) => median(all.map(pick))
  console.log(
    `| ${name} | ${of(({ ms }) => ms).toFixed(2)} | ${of((c) => c.statements).toFixed(1)} | ${of((c) => c.commits).toFixed(1)} |`,
  )
}
await app.close()
for (const client of [admin, raw, through]) await client.end()

import { Client } from 'pg'
import { type PostgresServer, startPostgres } from '../../scripts/postgres-server.ts'
import type { Counts, Purpose } from '../adapters/adapter.ts'
import type { Contender } from '../adapters/contenders.ts'
import type { Runs } from '../child/protocol.ts'
import { Child } from './child-process.ts'
import type { Ledger } from './ledger.ts'
import { treeCpuSeconds } from './processes.ts'
import { type Fsync, RedisServer } from './redis.ts'

export const SETTINGS = {
  shared_buffers: '1GB',
  fsync: 'on',
  synchronous_commit: 'on',
  full_page_writes: 'on',
  max_connections: 300,
  max_wal_size: '8GB',
  checkpoint_timeout: '30min',
  shared_preload_libraries: 'pg_stat_statements',
} as const

/** How much is measured; `--quick` gives the smaller figures. */
export interface Scale {
  readonly singlesMs: number
  readonly warmUpJobs: number
  readonly bulkJobs: number
  readonly drainJobs: number
  readonly pacedMs: number
  readonly backlogJobs: number
  readonly pinnedMs: number
  readonly beforeMs: number
  readonly idleMs: number
}

export const FULL: Scale = {
  singlesMs: 5_000,
  warmUpJobs: 4_000,
  bulkJobs: 100_000,
  drainJobs: 100_000,
  pacedMs: 15_000,
  backlogJobs: 1_000_000,
  pinnedMs: 120_000,
  beforeMs: 30_000,
  idleMs: 30_000,
}

export const QUICK: Scale = {
  singlesMs: 2_000,
  warmUpJobs: 2_000,
  bulkJobs: 50_000,
  drainJobs: 60_000,
  pacedMs: 4_000,
  backlogJobs: 200_000,
  pinnedMs: 30_000,
  beforeMs: 6_000,
  idleMs: 10_000,
}

/** A contender's own database (or Redis) with its schema in place. */
export interface Store {
  readonly contender: Contender
  readonly purpose: Purpose
  readonly url: string
  /** Database to watch; undefined on Redis. */
  readonly database: string | undefined
}

/** What the server spent on something. */
export interface Spent {
  readonly cpuSeconds: number
  readonly walBytes: number
  readonly statements: number
}

/** The servers of a run, and what workloads do with them. */
export class Bench {
  readonly scale: Scale
  readonly postgres: PostgresServer
  readonly #admin: Client
  readonly #redis = new Map<Fsync, RedisServer>()

  private constructor(scale: Scale, postgres: PostgresServer, admin: Client) {
    this.scale = scale
    this.postgres = postgres
    this.#admin = admin
  }

  static async start(scale: Scale): Promise<Bench> {
    const postgres = await startPostgres({ version: 18, settings: SETTINGS })
    const admin = new Client({ connectionString: postgres.url() })
    await admin.connect()
    await admin.query('create extension if not exists pg_stat_statements')
    return new Bench(scale, postgres, admin)
  }

  async stop(): Promise<void> {
    await this.#admin.end()
    for (const server of this.#redis.values()) await server.stop()
    await this.postgres.stop()
  }

  async postgresVersion(): Promise<string> {
    const { rows } = await this.#admin.query<{ version: string }>('select version()')
    return rows[0]?.version ?? ''
  }

  /** An empty store with the contender's schema. `label` tells apart those that live at the same time. */
  async createStore(contender: Contender, purpose: Purpose, label = ''): Promise<Store> {
    const store = await this.#emptyStore(contender, purpose, label)
    const child = await this.startChild(store)
    try {
      await child.ask('setup')
    } finally {
      await child.close()
    }
    return store
  }

  async dropStore(store: Store): Promise<void> {
    if (store.database) await this.#admin.query(`drop database if exists "${store.database}" with (force)`)
  }

  async startChild(store: Store, callers = 10): Promise<Child> {
    const { contender, url, purpose } = store
    return await Child.start({ contender: contender.name, config: contender.config, url, purpose, callers })
  }

  /**
   * A checkpoint now, so that none falls into what is measured. Before the jobs are enqueued, not after: else each
   * page of theirs would be logged whole once more, and the WAL per job would be that of the checkpoint.
   */
  async settleDown(): Promise<void> {
    await this.#admin.query('checkpoint')
  }

  /** Starts to watch the server; the result tells what it spent since. */
  async watch(store: Store): Promise<() => Promise<Spent>> {
    const before = await this.#readings(store)
    return async () => {
      const after = await this.#readings(store)
      return {
        cpuSeconds: after.cpuSeconds - before.cpuSeconds,
        walBytes: after.walBytes - before.walBytes,
        statements: after.statements - before.statements,
      }
    }
  }

  /** Holds a snapshot of `store` open; the result lets go of it. */
  async pinSnapshot(store: Store): Promise<() => Promise<void>> {
    const client = new Client({ connectionString: store.url })
    await client.connect()
    await client.query('begin isolation level repeatable read')
    await client.query('select count(*) from pg_class')
    return async () => {
      await client.query('rollback')
      await client.end()
    }
  }

  async databaseBytes(store: Store): Promise<number> {
    const { rows } = await this.#admin.query<{ bytes: string }>('select pg_database_size($1) bytes', [
      store.database,
    ])
    return Number(rows[0]?.bytes ?? Number.NaN)
  }

  async #emptyStore(contender: Contender, purpose: Purpose, label: string): Promise<Store> {
    if (contender.server !== 'postgres') {
      const redis = await this.#redisServer(contender.server === 'redis-always' ? 'always' : 'everysec')
      await redis.flush()
      return { contender, purpose, url: redis.url, database: undefined }
    }
    const database = `bench_${contender.name}${label && `_${label}`}`.replaceAll('-', '_')
    await this.#admin.query(`drop database if exists "${database}" with (force)`)
    await this.#admin.query(`create database "${database}"`)
    const url = this.postgres.url(database)
    const client = new Client({ connectionString: url })
    await client.connect()
    await client.query(
      'create table business_order (id bigint generated always as identity primary key, number int not null)',
    )
    await client.end()
    return { contender, purpose, url, database }
  }

  async #redisServer(fsync: Fsync): Promise<RedisServer> {
    const running = this.#redis.get(fsync) ?? (await RedisServer.start(fsync))
    this.#redis.set(fsync, running)
    return running
  }

  async #readings({ contender, database }: Store): Promise<Spent> {
    if (database === undefined) {
      const redis = await this.#redisServer(contender.server === 'redis-always' ? 'always' : 'everysec')
      return { cpuSeconds: treeCpuSeconds(redis.pid), walBytes: Number.NaN, statements: Number.NaN }
    }
    const { rows } = await this.#admin.query<{ wal: string; calls: string }>(
      `select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') wal,
              (select coalesce(sum(calls), 0) from pg_stat_statements s join pg_database d on d.oid = s.dbid
               where d.datname = $1) calls`,
      [database],
    )
    return {
      cpuSeconds: treeCpuSeconds(this.postgres.pid ?? 0),
      walBytes: Number(rows[0]?.wal),
      statements: Number(rows[0]?.calls),
    }
  }
}

const DRAIN_DEADLINE_MS = 180_000
/** Part of a drain's jobs that each process runs before it counts: what is measured until then is the compiler of Node. */
const WARM_UP = 0.2

/** Waits until the workers have run `jobs` in all. */
export async function waitForRuns(workers: readonly Child[], jobs: number): Promise<void> {
  const done = () => workers.reduce((sum, worker) => sum + worker.runCount, 0) >= jobs
  await new Promise<void>((resolve, reject) => {
    const timer = setTimeout(() => {
      const counts = workers.map(({ runCount }) => runCount).join(' + ')
      reject(new Error(`${workers[0]?.name}: ${counts} of ${jobs} jobs ran in ${DRAIN_DEADLINE_MS} ms`))
    }, DRAIN_DEADLINE_MS)
    const look = () => {
      if (!done()) return
      clearTimeout(timer)
      resolve()
    }
    for (const worker of workers) worker.onProgress = look
    look()
  })
}

export interface Drained {
  readonly jobsPerSecond: number
  readonly jobs: number
  /** Seconds, without the warm-up. */
  readonly clientCpuPerJob: number
  readonly peakMegabytes: number
  readonly runs: readonly Runs[]
  readonly spent: Spent
  readonly counts: Counts
}

export interface DrainSettings {
  readonly processes: number
  readonly concurrency: number
  /** Jobs to wait for, {@link WARM_UP} among them. */
  readonly jobs: number
  readonly ledger: Ledger
}

/** Starts workers on a filled store, waits until they ran `jobs`, ends them, and checks each run. */
export async function drain(bench: Bench, store: Store, settings: DrainSettings): Promise<Drained> {
  const { processes, concurrency, jobs, ledger } = settings
  const warmUp = Math.floor(jobs * WARM_UP)
  const workers = await Promise.all(Array.from({ length: processes }, () => bench.startChild(store)))
  try {
    for (const worker of workers) await worker.ask('open')
    const spent = await bench.watch(store)
    await Promise.all(
      workers.map((worker) => worker.ask('startWorker', concurrency, ledger.capacity, 'none', warmUp)),
    )
    await waitForRuns(workers, jobs)
    // Before the harness sends a million counts from the same process.
    const usages = await Promise.all(workers.map((worker) => worker.ask('usage')))
    const runs = await Promise.all(workers.map((worker) => worker.ask('runs')))
    await Promise.all(workers.map((worker) => worker.ask('stopWorker')))
    // What ran while the workers were stopping is no part of the rate, but of the account.
    const all = await Promise.all(workers.map((worker) => worker.ask('runs')))
    for (const one of all) ledger.add(one)
    const used = await spent()
    const [counts] = await Promise.all(workers.slice(0, 1).map((worker) => worker.ask('counts')))
    // Of two processes one may have got hardly any.
    const warm = runs.filter(({ counted }) => counted > 0)
    const firstAt = Math.min(...warm.map((one) => one.firstAt))
    const lastAt = Math.max(...warm.map((one) => one.lastAt))
    const counted = warm.reduce((sum, one) => sum + one.counted, 0)
    return {
      jobsPerSecond: (counted - 1) / ((lastAt - firstAt) / 1_000),
      jobs: runs.reduce((sum, one) => sum + one.count, 0),
      clientCpuPerJob: warm.reduce((sum, one) => sum + one.cpuSeconds, 0) / counted,
      peakMegabytes: Math.max(...usages.map(({ peakMegabytes }) => peakMegabytes)),
      runs: all,
      spent: used,
      counts: counts ?? { unfinished: Number.NaN, finished: undefined },
    }
  } finally {
    await Promise.all(workers.map((worker) => worker.close()))
  }
}

/** Enqueues jobs `from` … by the bulk call in a process of its own. */
export async function fill(
  bench: Bench,
  store: Store,
  from: number,
  jobs: number,
  tomorrow = false,
): Promise<void> {
  const producer = await bench.startChild(store)
  try {
    await producer.ask('open')
    await producer.ask('fill', from, jobs, 1_000, tomorrow)
  } finally {
    await producer.close()
  }
}

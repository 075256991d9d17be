import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { createEntries, fillEntries, type Sql } from '../../examples/export/entries.ts'
import { Storage, type TenantSpace } from '../../examples/export/storage.ts'
import { ensureBuilt } from '../../scripts/built.mjs'
import type { App } from '../../src/index.ts'
import { appOn } from '../faults/apps.ts'
import { createDatabase, type TestDatabase } from '../support/database.ts'
import { eventually } from '../support/eventually.ts'
import { type Program, startProgram } from '../support/processes.ts'

const ROWS = 100_000
const UNIT = 1_000
const DEADLINE_MS = 60_000

// The example and its workers import the package by its name.
beforeAll(() => {
  if (!ensureBuilt()) throw new Error('the package does not build')
})

/** A database with rows of a tenant, a folder for exports, and workers as a deployment has them. */
class Place implements AsyncDisposable {
  readonly app: App
  readonly folder: string
  readonly #db: TestDatabase
  readonly #workers: Program[] = []

  private constructor(db: TestDatabase, folder: string) {
    this.#db = db
    this.folder = folder
    this.app = appOn(db, { jobs: [] }).app
  }

  static async open(tenant: string): Promise<Place> {
    const db = await createDatabase()
    const sql: Sql = {
      query: async <R>(text: string, values: readonly unknown[] = []) => {
        const rows = (await db.sql(text, values)) as R[]
        return { rows, rowCount: rows.length }
      },
    }
    await createEntries(sql)
    await fillEntries(sql, tenant, ROWS)
    return new Place(db, await fs.mkdtemp(path.join(os.tmpdir(), 'holdfast-export-')))
  }

  /** Starts a worker process; resolves once it takes jobs. */
  async work(): Promise<Program> {
    const before = await this.#count('select count(*)::int as count from holdfast.worker')
    const env = { DATABASE_URL: this.#db.url, EXPORT_FOLDER: this.folder, EXPORT_DEPLOYMENT: 'test' }
    const worker = startProgram('dist/cli/main.js', { args: ['worker', 'examples/export/app.ts'], env })
    this.#workers.push(worker)
    await eventually(
      `a worker that is up: ${worker.output}`,
      async () => (await this.#count('select count(*)::int as count from holdfast.worker')) > before,
      { deadlineMs: 45_000 },
    )
    return worker
  }

  async enqueue(name: string, input: object): Promise<string> {
    const [row] = await this.#db.sql<{ id: string }>('select id::text from holdfast.enqueue($1, $2)', [
      name,
      JSON.stringify(input),
    ])
    return row?.id ?? ''
  }

  space(tenant: string): TenantSpace {
    return new Storage({ root: this.folder, deployment: 'test' }).of(tenant)
  }

  /** How far a job has come, as anybody can see who asks. */
  async progress(jobId: string): Promise<number> {
    return (await this.app.job(jobId).get())?.progress?.fraction ?? 0
  }

  async reaches(jobId: string, fraction: number): Promise<void> {
    await eventually(`${fraction} of the export`, async () => (await this.progress(jobId)) >= fraction, {
      deadlineMs: DEADLINE_MS,
      pollMs: 5,
    })
  }

  /** How many rows the job's checkpoint speaks of. */
  async checkpointed(jobId: string): Promise<number> {
    return await this.#count(
      `select (value ->> 'rows')::int as count from holdfast.checkpoint where job_id = ${jobId}`,
    )
  }

  async #count(query: string): Promise<number> {
    return Number((await this.#db.sql<{ count: number }>(query))[0]?.count ?? 0)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const worker of this.#workers) await worker.kill()
    await this.app.close()
    await this.#db.drop()
    await fs.rm(this.folder, { recursive: true })
  }
}

/** From which row each attempt of a worker began. */
function beginnings(worker: Program): number[] {
  return Array.from(worker.output.matchAll(/"fromRow":(\d+)/g), ([, row]) => Number(row))
}

function idsOf(csv: string): number[] {
  return csv
    .trimEnd()
    .split('\n')
    .map((line) => Number(line.slice(0, line.indexOf(','))))
}

const all = Array.from({ length: ROWS }, (_, index) => index + 1)

describe('an export of 100,000 rows', () => {
  it('that is killed at 57 % goes on from there: no row missing or doubled, its progress in sight and never falling', async () => {
    await using place = await Place.open('a/b')
    const first = await place.work()
    const id = await place.enqueue('reports.export', { tenant: 'a/b', exportId: '2026-11' })
    await place.reaches(id, 0.57)
    await first.kill()
    const atKill = await place.checkpointed(id)
    const space = place.space('a/b')
    expect([await space.list(), (await space.partials()).length]).toEqual([[], 1])

    const seen = [await place.progress(id)]
    const second = await place.work()
    const end = await eventually(
      'the end of the export',
      async () => {
        seen.push(await place.progress(id))
        return await place.app.job(id).wait({ timeoutMs: 0 })
      },
      { deadlineMs: DEADLINE_MS },
    )

    expect(end).toMatchObject({ state: 'completed', attempts: 2, result: { rows: ROWS } })
    expect(beginnings(second)).toEqual([atKill])
    expect(atKill % UNIT).toBe(0)
    expect(atKill).toBeGreaterThanOrEqual(0.57 * ROWS)
    expect(atKill).toBeLessThan(0.8 * ROWS)
    expect(seen).toEqual([...seen].sort((a, b) => a - b))
    expect(await place.progress(id)).toBe(1)
    expect(idsOf(await space.read('exports/2026-11.csv'))).toEqual(all)
    expect(await space.partials()).toEqual([])
    expect(await place.space('a').list()).toEqual([])
  }, 150_000)

  it('whose worker is stopped and wakes after another has finished it: refused, and nothing published is touched', async () => {
    await using place = await Place.open('a')
    const stopped = await place.work()
    const id = await place.enqueue('reports.export', { tenant: 'a', exportId: '1' })
    await place.reaches(id, 0.2)
    stopped.pause()
    await place.work()
    expect(await place.app.job(id).wait({ timeoutMs: DEADLINE_MS })).toMatchObject({ state: 'completed' })

    stopped.resume()
    await eventually('the refusal', () => /refused|lease/i.test(stopped.output.slice(-4000)))

    expect(await place.progress(id)).toBe(1)
    expect(idsOf(await place.space('a').read('exports/1.csv'))).toEqual(all)
    expect(await place.space('a').list()).toEqual(['exports/1.csv'])
  }, 150_000)

  it('that is cancelled stops at its next unit; what it left goes with the sweep, after the grace time', async () => {
    await using place = await Place.open('a')
    await place.work()
    const id = await place.enqueue('reports.export', { tenant: 'a', exportId: '1' })
    await place.reaches(id, 0.1)
    await place.app.job(id).cancel()
    expect(await place.app.job(id).wait({ timeoutMs: DEADLINE_MS })).toMatchObject({ state: 'cancelled' })
    const space = place.space('a')
    expect(await place.checkpointed(id)).toBeLessThan(ROWS)
    expect([await space.list(), (await space.partials()).length]).toEqual([[], 1])

    const sweep = async () => {
      const sweepId = await place.enqueue('reports.sweep', { tenant: 'a' })
      return (await place.app.job(sweepId).wait({ timeoutMs: DEADLINE_MS }))?.result
    }
    expect(await sweep()).toEqual({ removed: [] })
    const anHourAgo = new Date(Date.now() - 3_700_000)
    const folder = path.join(place.folder, 'test/a/partial')
    for (const file of await fs.readdir(folder))
      await fs.utimes(path.join(folder, file), anHourAgo, anHourAgo)
    expect(await sweep()).toEqual({ removed: ['exports/1.csv'] })
    expect(await space.partials()).toEqual([])
  }, 150_000)
})

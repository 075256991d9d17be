import type { PGlite } from '@electric-sql/pglite'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type App, defineApp } from '../../src/index.ts'
import { breakFunctions, type RunSql } from '../histories/broken-function.ts'
import { type Control, type ControlName, controls } from '../histories/controls.ts'
import { runControl } from '../histories/run-controls.ts'
import { runFleet } from '../histories/run-fleet.ts'
import { runInside } from '../histories/run-inside.ts'
import { workloadNames } from '../histories/workloads.ts'
import { openMigratedPglite } from '../support/backends.ts'
import { createDatabase } from '../support/database.ts'

/** The long form is `npm run histories -- --minutes 1 --seed 1`, and `--controls`. */

const SECONDS = 8

it('processes that are killed, paused, cut off and told nothing see locks, keys, scripts and sequences keep every promise', {
  timeout: 120_000,
}, async () => {
  await using db = await createDatabase()
  const sql = async (text: string) => await db.sql(text)
  const report = await runFleet({ seed: 1, seconds: SECONDS, workloads: workloadNames, url: db.url, sql })
  expect(report.workloads.flatMap(({ verdict }) => verdict.explanation)).toEqual([])
  expect(report.problems).toEqual([])
  expect(report.ok).toBe(true)
})

describe('on PGlite, many callers in one process', () => {
  let instance: PGlite
  let app: App
  beforeAll(async () => {
    instance = await openMigratedPglite()
    app = defineApp({ name: 'histories', database: instance, jobs: [] })
  })
  afterAll(async () => {
    await app.close()
    await instance.close()
  })

  it.each(workloadNames)('keep the promises of the workload %s', { timeout: 120_000 }, async (workload) => {
    const report = await runInside([app], { seed: 1, seconds: 0.3, workloads: [workload] })
    expect(report.workloads.map(({ verdict }) => verdict)).toMatchObject([{ answer: 'valid' }])
  })
})

/** One for each checker; the others by the command. */
const inSuite: readonly ControlName[] = [
  'set-without-recheck',
  'script-without-read-locks',
  'transfer-without-locks',
  'lock-of-two',
  'sequence-reads-then-writes',
]

describe('without what it rests on', () => {
  it.each(inSuite)('%s, the history is invalid', { timeout: 120_000 }, async (name) => {
    await using db = await createDatabase()
    const sql: RunSql = async (text, params) => await db.sql(text, params)
    const { finding, caught } = await runControl(name, { url: db.url, sql })
    expect(caught, finding).toBe(true)
  })

  it('every checker has a control here', () => {
    expect([...new Set(inSuite.map((name) => controls[name].noticedBy))].sort()).toEqual(
      [...workloadNames].sort(),
    )
  })

  it('every control fits the function it takes something out of', async () => {
    await using db = await createDatabase()
    const client = await db.connect()
    const sql = async (text: string, params: readonly unknown[] = []) =>
      (await client.query<Record<string, unknown>>(text, [...params])).rows
    for (const { functions = [] } of Object.values<Control>(controls)) {
      await sql('begin')
      await breakFunctions(sql, functions)
      await sql('rollback')
    }
  })
})

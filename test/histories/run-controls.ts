import fs from 'node:fs'
import { defineApp } from '../../src/index.ts'
import { breakFunctions, type RunSql } from './broken-function.ts'
import type { Verdict } from './checkers/verdict.ts'
import { type Control, type ControlName, controls } from './controls.ts'
import type { HistoriesReport } from './report.ts'
import { runFleet } from './run-fleet.ts'
import { runInside } from './run-inside.ts'

export interface ControlResult {
  readonly name: ControlName
  readonly control: Control
  readonly caught: boolean
  /** What noticed, or why nothing did. */
  readonly finding: string
  readonly tookMs: number
}

/** A migrated database of one run. */
export interface ControlDatabase {
  readonly url: string
  readonly sql: RunSql
}

const SECONDS = 1
const FAULTY_SECONDS = 8
/** What is broken shows when two calls meet, and on a busy machine they meet seldom. */
const MOST_RUNS = 16

/** Runs the workload of a control over a product broken by it, until its checker says `invalid`, as it has to. */
export async function runControl(name: ControlName, database: ControlDatabase): Promise<ControlResult> {
  const control: Control = controls[name]
  const fromMs = performance.now()
  await breakFunctions(database.sql, control.functions ?? [])
  const play = control.edits === undefined ? runOverFunctions : runOverCopy
  let verdict: Verdict | undefined
  for (let seed = 1; seed <= MOST_RUNS && verdict?.answer !== 'invalid'; seed += 1) {
    const { workloads } = await play(control, database, seed)
    verdict = workloads.find(({ workload }) => workload === control.noticedBy)?.verdict
  }
  const [first = ''] = verdict?.explanation ?? []
  const caught = verdict?.answer === 'invalid'
  const count = verdict?.explanation.length ?? 0
  const finding = caught
    ? `${count} found: ${first.split('\n')[0]?.slice(0, 110) ?? ''}`
    : `${verdict?.answer ?? 'no verdict'}: ${first}`
  return { name, control, caught, finding, tookMs: performance.now() - fromMs }
}

/** Three applications in this process: what is broken is between their connections. */
async function runOverFunctions(
  { noticedBy }: Control,
  { url }: ControlDatabase,
  seed: number,
): Promise<HistoriesReport> {
  const apps = [1, 2, 3].map((number) =>
    defineApp({ name: `control-${number}`, database: url, jobs: [], maxConnections: 6 }),
  )
  try {
    return await runInside(apps, { seed, seconds: SECONDS, workloads: [noticedBy], pauseMs: 0 })
  } finally {
    for (const app of apps) await app.close()
  }
}

async function runOverCopy(
  { noticedBy, edits }: Control,
  { url, sql }: ControlDatabase,
  seed: number,
): Promise<HistoriesReport> {
  const common = { seed, seconds: FAULTY_SECONDS, workloads: [noticedBy], url, sql }
  const report = await runFleet({ ...common, ...(edits === undefined ? {} : { edits }) })
  if (report.artifacts !== undefined) fs.rmSync(report.artifacts, { recursive: true, force: true })
  return report
}

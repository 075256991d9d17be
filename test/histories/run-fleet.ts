import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { defineApp } from '../../src/index.ts'
import { type Life, Slot } from '../chaos/fleet.ts'
import { machineMs } from '../chaos/history-log.ts'
import { copyPackage, type Edit } from '../chaos/package-copy.ts'
import { eventually } from '../support/eventually.ts'
import { callsOf, memoryLog } from './call-log.ts'
import { faultShortages, noFaults } from './fault-counts.ts'
import { makeFaults } from './faults.ts'
import { type HistoriesReport, reportOf } from './report.ts'
import { finishAll, prepareAll } from './run-inside.ts'
import type { WorkloadName } from './workload.ts'
import { workloadsOf } from './workloads.ts'

export interface FleetOptions {
  readonly seed: number
  /** At the least. On a busy machine it goes on, up to three times as long, until enough was done and hit. */
  readonly seconds: number
  readonly workloads: readonly WorkloadName[]
  /** A migrated database that nobody else uses. */
  readonly url: string
  readonly sql: (text: string) => Promise<readonly unknown[]>
  /** Default: 4. */
  readonly processes?: number
  /** Statements to break in the copy of the library that the processes run. */
  readonly edits?: readonly Edit[]
}

const MOST_ROUNDS = 3
/** Answered calls of each workload. */
const ENOUGH_CALLS = 120

/** Runs the workloads in processes of their own, each behind a proxy, breaks them for `seconds`, and checks what they logged. */
export async function runFleet(options: FleetOptions): Promise<HistoriesReport> {
  const { seed, seconds, workloads: names, url, sql, processes = 4 } = options
  const artifacts = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-histories-'))
  const copy = copyPackage(path.join(artifacts, 'package'), options.edits)
  const counts = noFaults()
  const unordered: Life[] = []
  const slots: Slot[] = []
  await using app = defineApp({ name: 'histories-end', database: url, jobs: [], maxConnections: 3 })
  try {
    const startMs = machineMs()
    const edge = memoryLog()
    const outside = { app, seed, startMs, note: edge.note }
    await prepareAll({ ...outside, name: 'start' }, names)
    const settings = { seed, startMs, workloads: names, clients: 2, pauseMs: 3 }
    for (let number = 1; number <= processes; number += 1) {
      const program = copy.historiesProgram
      const name = `process-${number}`
      const onUnordered = (life: Life) => void unordered.push(life)
      slots.push(await Slot.open({ name, program, artifacts, url, leaseMs: 0, settings, onUnordered }))
    }
    await eventually('all processes are ready', () => slots.every(({ ready }) => ready), {
      deadlineMs: 30_000,
    })

    const statements = workloadsOf(names).flatMap((workload) => workload.statements)
    const proved = () => hasEnough(slots, names) && faultShortages(counts, seconds / 60).length === 0
    for (let round = 0; round < MOST_ROUNDS && (round === 0 || !proved()); round += 1) {
      const untilMs = machineMs() + seconds * 1000
      await makeFaults({ slots, counts, seed: seed + round * 1_000_003, untilMs, statements, sql })
    }
    const stopped = await Promise.all(slots.map(async (slot) => await slot.stop()))
    await finishAll({ ...outside, name: 'end' }, names)

    const entries = [...slots.flatMap((slot) => slot.entries().map(({ entry }) => entry)), ...edge.entries]
    const problems = [
      ...faultShortages(counts, seconds / 60),
      ...slots.flatMap(({ name }, place) => (stopped[place] ? [] : [`${name} did not stop after SIGTERM`])),
      ...unordered.map((life) => `${life.slot} ended by itself (${life.exit}): ${errorOf(artifacts, life)}`),
    ]
    const report = reportOf({ seed, seconds, names, calls: callsOf(entries), counts, problems })
    if (!report.ok) return { ...report, artifacts }
    fs.rmSync(artifacts, { recursive: true, force: true })
    return report
  } finally {
    await Promise.all(slots.map(async (slot) => await slot.close()))
    fs.rmSync(copy.dir, { recursive: true, force: true })
  }
}

function hasEnough(slots: readonly Slot[], names: readonly WorkloadName[]): boolean {
  const calls = slots.flatMap((slot) => callsOf(slot.entries().map(({ entry }) => entry)))
  return names.every(
    (name) => calls.filter((call) => call.workload === name && call.outcome === 'ok').length >= ENOUGH_CALLS,
  )
}

/** What a process that ended by itself last wrote. */
function errorOf(artifacts: string, { slot }: Life): string {
  const files = fs.readdirSync(artifacts).filter((file) => file.startsWith(slot) && file.endsWith('.stderr'))
  return files.map((file) => fs.readFileSync(path.join(artifacts, file), 'utf8').slice(-400)).join('\n')
}

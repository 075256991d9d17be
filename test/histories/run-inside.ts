import type { App } from '../../src/index.ts'
import { machineMs } from '../chaos/history-log.ts'
import { callsOf, memoryLog } from './call-log.ts'
import { type ClientsOptions, clientOf, runClients } from './clients.ts'
import { noFaults } from './fault-counts.ts'
import { type HistoriesReport, reportOf } from './report.ts'
import type { Workload, WorkloadName } from './workload.ts'
import { workloadsOf } from './workloads.ts'

export interface InsideOptions {
  readonly seed: number
  /** At the least. On a busy machine it goes on until enough was done to prove something. */
  readonly seconds: number
  readonly workloads: readonly WorkloadName[]
  /** Default: 3 of each workload and application. */
  readonly clients?: number
  /** Default: 1 ms. */
  readonly pauseMs?: number
}

/** Runs the workloads in this process, over applications that are migrated, and breaks nothing. */
export async function runInside(apps: readonly App[], options: InsideOptions): Promise<HistoriesReport> {
  const { seed, seconds, workloads: names, clients = 3, pauseMs = 1 } = options
  const log = memoryLog()
  const common = { seed, startMs: machineMs(), note: log.note }
  const [first] = apps
  if (first === undefined) throw new Error('an application is needed')
  await prepareAll({ ...common, app: first, name: 'start' }, names)
  const untilMs = machineMs() + seconds * 1000
  const turns = new Map<Workload, number>()
  const isOver = (workload: Workload) => {
    const done = turns.get(workload) ?? 0
    turns.set(workload, done + 1)
    return machineMs() >= untilMs && done >= workload.enoughTurns
  }
  const running = apps.map(async (app, number) => {
    const own: ClientsOptions = {
      ...common,
      app,
      name: `app-${number + 1}`,
      workloads: names,
      clients,
      pauseMs,
    }
    await runClients(own, isOver)
  })
  await Promise.all(running)
  await finishAll({ ...common, app: first, name: 'end' }, names)
  const calls = callsOf(log.entries)
  return reportOf({ seed, seconds, names, calls, counts: noFaults(), problems: [] })
}

/** For whom a run makes its first and last calls. */
type Edge = Parameters<typeof clientOf>[0]

export async function prepareAll(edge: Edge, names: readonly WorkloadName[]): Promise<void> {
  for (const { name, prepare } of workloadsOf(names)) await prepare?.(clientOf(edge, name))
}

export async function finishAll(edge: Edge, names: readonly WorkloadName[]): Promise<void> {
  for (const { name, finish } of workloadsOf(names)) await finish?.(clientOf(edge, name))
}

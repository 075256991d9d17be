import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { type PostgresServer, startPostgres, volatileSettings } from '../../scripts/postgres-server.ts'
import { Inspector } from './audit.ts'
import { check } from './checker.ts'
import { collect, type Drain } from './collect.ts'
import { disturb } from './disturb.ts'
import { type Life, Slot } from './fleet.ts'
import { machineMs } from './history-log.ts'
import { decideDoubts } from './operator.ts'
import type { ChaosOptions } from './options.ts'
import { copyPackage, type PackageCopy } from './package-copy.ts'
import { ProviderDouble } from './provider.ts'
import { type ChaosReport, keep, reportOf } from './report.ts'
import { noFaults, type Stage } from './stage.ts'

const LEASES_MS = [1500, 1500, 2000, 2000]
const PRODUCER_EVERY_MS = 85

/** Runs an application under faults for `minutes`, lets it drain, and checks its history. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const artifacts = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-chaos-'))
  const copy = copyPackage(path.join(artifacts, 'package'), options.edits)
  await using server = await startPostgres({ settings: { ...volatileSettings, max_connections: 200 } })
  const inspector = new Inspector(server.url())
  await migrate(copy.entry, server)
  await inspector.install()
  const provider = await ProviderDouble.start(copy.providerProgram, artifacts)

  const unordered: Life[] = []
  const ending = new AbortController()
  const stage = stageOf({ server, inspector, provider, signal: ending.signal })
  try {
    await startProcesses(stage, { copy, artifacts, unordered, seed: options.seed })
    const samples = new Map<string, string>()
    await disturb(stage, options, samples)
    options.onProgress?.('healed; waiting for the jobs to end')
    const drain = await drainAll(stage, options.drainMs ?? 60_000)
    const history = await collect(stage, { unordered, samples, drain })
    const verdicts = check(history)
    Object.assign(stage.counts, { doubtsResolved: verdicts.doubtsResolved, commits: history.counted })
    const report = reportOf(options, stage, verdicts, history, {
      artifacts,
      drainedInMs: drain.left === 0 ? drain.tookMs : undefined,
    })
    if (report.ok) fs.rmSync(artifacts, { recursive: true, force: true })
    else keep(report, history)
    return report
  } finally {
    ending.abort()
    await Promise.all([...stage.workers, ...stage.producers].map(async (slot) => await slot.close()))
    await provider.close()
    fs.rmSync(copy.dir, { recursive: true, force: true })
  }
}

function stageOf(parts: Pick<Stage, 'server' | 'inspector' | 'provider' | 'signal'>): Stage {
  return {
    ...parts,
    workers: [],
    producers: [],
    counts: noFaults(),
    kills: [],
    outages: [],
    disturbances: [],
    lostReplies: new Map(),
    problems: [],
    armed: new Set(),
    isUp: true,
  }
}

interface Setup {
  readonly copy: PackageCopy
  readonly artifacts: string
  readonly unordered: Life[]
  readonly seed: number
}

/** Opens every slot, and waits until each process says that it works. */
async function startProcesses(stage: Stage, { copy, artifacts, unordered, seed }: Setup): Promise<void> {
  const { workers, producers, counts, server, provider } = stage
  const marks = path.join(artifacts, 'marks')
  fs.mkdirSync(marks)
  const common = { artifacts, url: server.url() }
  const shared = { marks, provider: provider.url }
  const onWorkerEnd = (life: Life) => {
    if (diedOfPill(life)) counts.pills += 1
    else unordered.push(life)
    workers.find(({ name }) => name === life.slot)?.start()
  }
  for (const [index, leaseMs] of LEASES_MS.entries()) {
    const settings = { ...shared, knowsRare: index % 2 === 0 }
    const program = copy.workerProgram
    const name = `worker-${index + 1}`
    workers.push(await Slot.open({ ...common, name, program, leaseMs, settings, onUnordered: onWorkerEnd }))
  }
  for (const name of ['producer-1', 'producer-2']) {
    const settings = { ...shared, seed, everyMs: PRODUCER_EVERY_MS }
    const program = copy.producerProgram
    const onUnordered = (life: Life) => void unordered.push(life)
    producers.push(await Slot.open({ ...common, name, program, leaseMs: 1500, settings, onUnordered }))
  }
  const isReady = () => [...workers, ...producers].every(({ ready }) => ready)
  await until(isReady, 20_000, 'the processes did not start')
}

async function migrate(entry: string, server: PostgresServer): Promise<void> {
  const { defineApp } = (await import(pathToFileURL(entry).href)) as typeof import('../../src/index.ts')
  await using app = defineApp({ name: 'chaos', database: server.url(), jobs: [] })
  await app.migrate()
}

/** Producers end first; then all jobs have to, and all doubts be decided, with nothing broken any more; then the workers stop as in a deploy. */
async function drainAll(stage: Stage, withinMs: number): Promise<Drain> {
  for (const slot of stage.producers) {
    if (!(await slot.stop(40_000)))
      stage.problems.push(`${slot.name} did not end: a call of its never came back`)
  }
  const fromMs = machineMs()
  const open = async () => (await decideDoubts(stage)) + (await stage.inspector.unfinished())
  let left = await open()
  while (left > 0 && machineMs() < fromMs + withinMs) {
    await delay(100)
    left = await open()
  }
  const tookMs = machineMs() - fromMs
  const stopped = await Promise.all(stage.workers.map(async (slot) => await slot.stop()))
  for (const [index, inTime] of stopped.entries()) {
    if (!inTime) stage.problems.push(`${stage.workers[index]?.name} did not stop within 40 s of SIGTERM`)
  }
  return { left, tookMs }
}

function diedOfPill(life: Life): boolean {
  const running = life.history.running()
  const last = life.history.entries.findLast(({ kind }) => kind === 'pill')
  return last !== undefined && running.has(`${String(last['job'])}:${String(last['token'])}`)
}

async function until(look: () => boolean, withinMs: number, problem: string): Promise<void> {
  const untilMs = machineMs() + withinMs
  while (!look()) {
    if (machineMs() > untilMs) throw new Error(problem)
    await delay(50)
  }
}

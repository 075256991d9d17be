import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import { type PostgresServer, startPostgres, volatileSettings } from '../../scripts/postgres-server.ts'
import { Inspector } from './audit.ts'
import { check, type Verdicts } from './checker.ts'
import { type FaultCounts, type FaultName, faults, paceOfFaults, type Stage } from './faults.ts'
import { type Life, Slot } from './fleet.ts'
import { type Entry, machineMs } from './history-log.ts'
import { copyPackage, type Edit } from './package-copy.ts'
import { seededRandom } from './random.ts'

export interface ChaosOptions {
  readonly minutes: number
  readonly seed: number
  /** Statements of the library to break, for a negative control. */
  readonly edits?: readonly Edit[]
  /** Longest time for the jobs to end once nothing is broken any more, in milliseconds. Default: 60,000. */
  readonly drainMs?: number
  /** Mean pauses between faults, in place of the usual ones. */
  readonly pace?: Partial<Readonly<Record<FaultName, number>>>
  readonly onProgress?: (line: string) => void
}

export interface ChaosReport extends Verdicts {
  readonly seed: number
  readonly minutes: number
  readonly counts: Readonly<FaultCounts>
  readonly lostReplies: ReadonlyMap<string, number>
  /** Faults that hit less often than they must for the run to prove something. */
  readonly shortages: readonly string[]
  readonly violations: readonly string[]
  readonly ok: boolean
  readonly jobs: number
  /** What the workers' `worker.error` events told, each once. */
  readonly workerErrors: readonly string[]
  readonly attempts: number
  readonly drainedInMs: number | undefined
  /** Folder of histories and logs; removed if all went well. */
  readonly artifacts: string
}

/** The least that has to hit in three minutes; scaled with the length of the run. */
const MINIMA_OF_THREE_MINUTES = {
  killsInHandler: 30,
  zombies: 10,
  zombieWritesRefused: 10,
  lostReplies: 20,
  restarts: 3,
} as const satisfies Partial<FaultCounts>

/** How often each fault has to hit in a run of `minutes`. */
export function leastOf(minutes: number): Readonly<Record<keyof typeof MINIMA_OF_THREE_MINUTES, number>> {
  const scaled = Object.entries(MINIMA_OF_THREE_MINUTES).map(([name, least]) => [
    name,
    Math.max(1, Math.round((least * minutes) / 3)),
  ])
  return Object.fromEntries(scaled) as Record<keyof typeof MINIMA_OF_THREE_MINUTES, number>
}

const LEASES_MS = [1500, 1500, 2000, 2000]
const PRODUCER_EVERY_MS = 60

/** Runs an application under faults for `minutes`, lets it drain, and checks its history. */
export async function runChaos(options: ChaosOptions): Promise<ChaosReport> {
  const artifacts = fs.mkdtempSync(path.join(os.tmpdir(), 'holdfast-chaos-'))
  const copy = copyPackage(path.join(artifacts, 'package'), options.edits)
  await using server = await startPostgres({ settings: { ...volatileSettings, max_connections: 200 } })
  const inspector = new Inspector(server.url())
  await migrate(copy.entry, server)
  await inspector.install()

  const unordered: Life[] = []
  const marks = path.join(artifacts, 'marks')
  fs.mkdirSync(marks)
  const common = { artifacts, url: server.url() }
  const workers: Slot[] = []
  const producers: Slot[] = []
  const counts = noFaults()
  const onWorkerEnd = (life: Life) => {
    if (diedOfPill(life)) counts.pills += 1
    else unordered.push(life)
    workers.find(({ name }) => name === life.slot)?.start()
  }
  const ending = new AbortController()
  const stage: Stage = {
    server,
    inspector,
    workers,
    producers,
    counts,
    kills: [],
    outages: [],
    disturbances: [],
    lostReplies: new Map(),
    problems: [],
    armed: new Set(),
    signal: ending.signal,
    isUp: true,
  }
  try {
    for (const [index, leaseMs] of LEASES_MS.entries()) {
      const settings = { marks, knowsRare: index % 2 === 0 }
      const program = copy.workerProgram
      workers.push(
        await Slot.open({
          ...common,
          name: `worker-${index + 1}`,
          program,
          leaseMs,
          settings,
          onUnordered: onWorkerEnd,
        }),
      )
    }
    for (const name of ['producer-1', 'producer-2']) {
      const settings = { marks, seed: options.seed, everyMs: PRODUCER_EVERY_MS }
      const program = copy.producerProgram
      producers.push(
        await Slot.open({
          ...common,
          name,
          program,
          leaseMs: 1500,
          settings,
          onUnordered: (life) => unordered.push(life),
        }),
      )
    }
    await until(
      () => [...workers, ...producers].every(({ ready }) => ready),
      20_000,
      'the processes did not start',
    )

    const samples = new Map<string, string>()
    await disturb(stage, options, samples)
    options.onProgress?.('healed; waiting for the jobs to end')
    const drain = await drainAll(stage, options.drainMs ?? 60_000)
    const history = {
      ...(await collect(stage, unordered, samples)),
      drained: drain.left === 0,
      left: drain.left,
    }
    const verdicts = check(history)
    const report = reportOf(options, stage, verdicts, history, {
      artifacts,
      drainedInMs: drain.left === 0 ? drain.tookMs : undefined,
    })
    if (report.ok) fs.rmSync(artifacts, { recursive: true, force: true })
    else keep(artifacts, history, report)
    return report
  } finally {
    ending.abort()
    await Promise.all([...workers, ...producers].map(async (slot) => await slot.close()))
    fs.rmSync(copy.dir, { recursive: true, force: true })
  }
}

async function migrate(entry: string, server: PostgresServer): Promise<void> {
  const { defineApp } = (await import(pathToFileURL(entry).href)) as typeof import('../../src/index.ts')
  await using app = defineApp({ name: 'chaos', database: server.url(), jobs: [] })
  await app.migrate()
}

/** Every kind of fault at its own pace, until the time is over and the last one has healed. */
async function disturb(stage: Stage, options: ChaosOptions, samples: Map<string, string>): Promise<void> {
  const untilMs = machineMs() + options.minutes * 60_000
  const pace = { ...paceOfFaults, ...options.pace }
  const over = () => machineMs() >= untilMs
  const restartPauseMs = Math.min(pace.restart, (options.minutes * 60_000) / 3)

  const loops = (Object.keys(faults) as FaultName[]).map(async (name) => {
    const random = seededRandom(options.seed, name)
    const pauseMs = name === 'restart' ? restartPauseMs : pace[name]
    while (!over()) {
      const waitMs = Math.min(pauseMs * (0.5 + random.next()), Math.max(0, untilMs - machineMs()))
      await delay(waitMs)
      if (over()) return
      if (!stage.isUp) continue
      try {
        await faults[name](stage, random)
      } catch (error) {
        stage.problems.push(`the fault ${name} could not be made: ${String(error)}`)
      }
    }
  })
  const telling = every(5000, over, () => options.onProgress?.(progressOf(stage, untilMs - machineMs())))
  const sampling = every(3000, over, async () => {
    if (!stage.isUp) return
    for (const [job, end] of await endsOf(stage.inspector, 'order by finished_at desc limit 100'))
      samples.set(job, end)
  })
  const poisoning = every(9000, over, async () => await poison(stage, options))
  await Promise.all([...loops, telling, sampling, poisoning])
  for (const slot of [...stage.workers, ...stage.producers]) slot.proxy.pass()
}

async function every(ms: number, over: () => boolean, act: () => unknown): Promise<void> {
  while (!over()) {
    await act()
    for (let waited = 0; waited < ms && !over(); waited += 250) await delay(250)
  }
}

/** A pill comes from the supervisor, so that its number is known: each ends its worker three times. */
async function poison(stage: Stage, { seed }: ChaosOptions): Promise<void> {
  if (!stage.isUp) return
  const key = `pill-${seed}-${machineMs().toFixed(0)}`
  await stage.inspector
    .query('select holdfast.enqueue($1, $2)', ['pill', JSON.stringify({ key })])
    // The database may go away at this moment: then there is no pill, or nobody knows.
    .catch(() => {})
}

interface Drain {
  readonly left: number
  readonly tookMs: number
}

/** Producers end first; then all jobs have to, with nothing broken any more; then the workers stop as in a deploy. */
async function drainAll(stage: Stage, withinMs: number): Promise<Drain> {
  for (const slot of stage.producers) {
    if (!(await slot.stop(40_000)))
      stage.problems.push(`${slot.name} did not end: a call of its never came back`)
  }
  const fromMs = machineMs()
  let left = await stage.inspector.unfinished()
  while (left > 0 && machineMs() < fromMs + withinMs) {
    await delay(100)
    left = await stage.inspector.unfinished()
  }
  const tookMs = machineMs() - fromMs
  const stopped = await Promise.all(stage.workers.map(async (slot) => await slot.stop()))
  for (const [index, inTime] of stopped.entries()) {
    if (!inTime) stage.problems.push(`${stage.workers[index]?.name} did not stop within 40 s of SIGTERM`)
  }
  return { left, tookMs }
}

async function collect(stage: Stage, unordered: readonly Life[], samples: ReadonlyMap<string, string>) {
  const { inspector } = stage
  const orders = await inspector.query<{ key: string }>('select key from orders')
  const [held] = await inspector.query<{ count: number }>(
    'select count(*)::int as count from holdfast.unique_key',
  )
  return {
    workers: stage.workers.flatMap((slot) => slot.entries()),
    producers: stage.producers.flatMap((slot) => slot.entries()),
    audit: await inspector.audit(),
    jobs: await inspector.jobs(),
    orders: new Set(orders.map(({ key }) => key)),
    heldKeys: held?.count ?? 0,
    kills: stage.kills,
    outages: stage.outages,
    disturbances: stage.disturbances,
    unordered,
    samples,
    finalSamples: await endsOf(inspector, ''),
    clockOffsetMs: await inspector.clockOffsetMs(machineMs),
    problems: stage.problems,
  }
}

async function endsOf(inspector: Inspector, rest: string): Promise<ReadonlyMap<string, string>> {
  const rows = await inspector.query<{ id: string; end: string }>(
    `select job_id::text as id, concat_ws('/', state, token, attempts, finished_at::text, reason) as end from holdfast.outcome ${rest}`,
  )
  return new Map(rows.map(({ id, end }) => [id, end]))
}

function reportOf(
  { minutes, seed }: ChaosOptions,
  stage: Stage,
  verdicts: Verdicts,
  history: {
    readonly jobs: readonly unknown[]
    readonly workers: readonly { readonly entry: Entry }[]
  },
  facts: { readonly artifacts: string; readonly drainedInMs: number | undefined },
): ChaosReport {
  const shortages = Object.entries(leastOf(minutes)).flatMap(([name, least]) => {
    const hit = stage.counts[name as keyof FaultCounts]
    return hit < least ? [`${name}: ${hit}, at least ${least} must hit`] : []
  })
  const violations = verdicts.verdicts.flatMap(({ name, violations: found }) =>
    found.map((text) => `${name}: ${text}`),
  )
  return {
    ...verdicts,
    ...facts,
    seed,
    minutes,
    counts: stage.counts,
    lostReplies: stage.lostReplies,
    shortages,
    violations,
    ok: shortages.length === 0 && violations.length === 0,
    jobs: history.jobs.length,
    workerErrors: [
      ...new Set(
        history.workers.flatMap(({ entry }) => (entry.kind === 'error' ? [String(entry['error'])] : [])),
      ),
    ],
    attempts: history.workers.filter(({ entry }) => entry.kind === 'start').length,
  }
}

function keep(artifacts: string, history: object, report: ChaosReport): void {
  const { audit } = history as { readonly audit: readonly object[] }
  fs.writeFileSync(path.join(artifacts, 'audit.jsonl'), audit.map((row) => JSON.stringify(row)).join('\n'))
  fs.writeFileSync(
    path.join(artifacts, 'violations.txt'),
    [...report.shortages, ...report.violations].join('\n'),
  )
}

function progressOf({ counts }: Stage, leftMs: number): string {
  const { kills, killsInHandler, pills, zombies, restarts, lostReplies, terminated } = counts
  return `${Math.ceil(leftMs / 1000)} s left: ${killsInHandler}/${kills} kills in a handler, ${pills} pills, ${zombies} zombies, ${lostReplies} lost replies, ${terminated} sessions ended, ${restarts} restarts`
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

function noFaults(): FaultCounts {
  return {
    kills: 0,
    killsInHandler: 0,
    pills: 0,
    stops: 0,
    pauses: 0,
    zombies: 0,
    zombieWritesRefused: 0,
    terminated: 0,
    terminatedListeners: 0,
    terminatedHeartbeats: 0,
    restarts: 0,
    lostReplies: 0,
    cuts: 0,
    freezes: 0,
  }
}

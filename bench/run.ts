import fs from 'node:fs'
import path from 'node:path'
import { type Contender, contenderNamed } from './adapters/contenders.ts'
import { judge } from './bars.ts'
import { machine, versions } from './machine.ts'
import { Bench, SETTINGS } from './measure/bench.ts'
import { killChildren } from './measure/child-process.ts'
import { type Options, readOptions, USAGE } from './options.ts'
import { barsTable, workloadTable } from './report.ts'
import { Results } from './results.ts'
import { w1 } from './workloads/w1.ts'
import { w2 } from './workloads/w2.ts'
import { w3 } from './workloads/w3.ts'
import { w4 } from './workloads/w4.ts'
import { w5 } from './workloads/w5.ts'
import { w6 } from './workloads/w6.ts'
import { w7 } from './workloads/w7.ts'
import { w8 } from './workloads/w8.ts'
import { w9 } from './workloads/w9.ts'
import type { Workload } from './workloads/workload.ts'

const WORKLOADS = [w1, w2, w3, w4, w5, w6, w7, w8, w9]

/** Why contenders cannot run here, by name. */
type Absent = ReadonlyMap<string, string>

async function main(): Promise<void> {
  const options = readOptions(process.argv.slice(2))
  if (options === 'help') {
    console.log(USAGE)
    return
  }
  const startedAt = performance.now()
  const workloads = WORKLOADS.filter(({ id }) => options.only?.includes(id) ?? true)
  const absent = absentContenders()
  const bench = await Bench.start(options.scale)
  const results = new Results()
  try {
    const about = { machine: machine(), versions: { postgres: await bench.postgresVersion(), ...versions() } }
    console.log(heading(about, options, absent))
    for (const workload of workloads) {
      await runWorkload(bench, workload, options, absent, results)
      console.log(workloadTable(workload, results, options.baselines))
    }
    const bars = judge(results, new Set(workloads.map(({ id }) => id)))
    console.log(barsTable(bars))
    for (const fault of results.faults) console.log(`\nFAULT  ${fault}`)
    const minutes = (performance.now() - startedAt) / 60_000
    const file = write(isWhole(options) ? '' : '-part', {
      date: new Date().toISOString(),
      minutes,
      ...about,
      settings: SETTINGS,
      options,
      absent: Object.fromEntries(absent),
      bars,
      faults: results.faults,
      rows: workloads.flatMap(({ id }) => results.rows(id)),
    })
    console.log(`\n${minutes.toFixed(1)} minutes; written to ${path.relative(process.cwd(), file)}`)
    if (results.faults.length > 0 || bars.some(({ verdict }) => verdict === 'FAIL')) process.exitCode = 1
  } finally {
    killChildren()
    await bench.stop()
  }
}

/** A B C A B C: what the machine does to one round it does to all contenders. */
async function runWorkload(
  bench: Bench,
  workload: Workload,
  options: Options,
  absent: Absent,
  results: Results,
): Promise<void> {
  const rounds = Math.min(options.rounds, workload.maxRounds ?? options.rounds)
  const points = workload.points ?? ['']
  for (let round = 1; round <= rounds; round += 1) {
    for (const point of points) {
      for (const contender of contendersOf(workload, options, absent)) {
        progress(`${workload.id} round ${round} of ${rounds}${point && `, ${point}`}: ${contender.name}`)
        try {
          results.add(workload.id, contender.name, round, await workload.run(bench, contender, point))
        } catch (error) {
          const message = error instanceof Error ? error.message : String(error)
          results.fault(`${workload.id} round ${round}, ${contender.name}: ${message}`)
          killChildren()
        }
      }
    }
  }
  progress('')
}

function contendersOf(workload: Workload, options: Options, absent: Absent): readonly Contender[] {
  const able = [...workload.contenders, ...workload.more]
  const names = options.contenders
    ? able.filter((name) => options.contenders?.includes(name))
    : options.all
      ? able
      : workload.contenders
  return names.filter((name) => !absent.has(name)).map(contenderNamed)
}

function absentContenders(): Absent {
  const absent = new Map<string, string>()
  if (!fs.existsSync(path.join(import.meta.dirname, 'node_modules/holdfast/dist/index.js'))) {
    absent.set('holdfast', 'not built: run npm run build')
  }
  if (!process.env['BENCH_ABSURD_SQL']) {
    absent.set('absurd', 'its schema is not on npm: set BENCH_ABSURD_SQL (bench/README.md)')
  }
  const folders = (process.env['PATH'] ?? '').split(':')
  if (!folders.some((folder) => fs.existsSync(path.join(folder, 'redis-server')))) {
    for (const name of ['bullmq', 'bullmq-everysec']) absent.set(name, 'redis-server is not installed')
  }
  return absent
}

function heading(
  about: { machine: ReturnType<typeof machine>; versions: Record<string, string> },
  options: Options,
  absent: Absent,
): string {
  const { processor, cores, memoryGigabytes, kernel } = about.machine
  const settings = Object.entries(SETTINGS).map(([name, value]) => `${name}=${value}`)
  return [
    `Machine    ${processor}, ${cores} cores, ${memoryGigabytes} GB, Linux ${kernel}`,
    ...Object.entries(about.versions).map(([name, version]) => `${name.padEnd(17)}${version}`),
    `Settings   ${settings.join(' ')}`,
    `Rounds     ${options.rounds}${options.quick ? ', quick' : ''}; medians, ± half of the range`,
    ...[...absent].map(([name, reason]) => `Left out   ${name}: ${reason}`),
  ].join('\n')
}

interface Stamped extends Record<string, unknown> {
  readonly date: string
  readonly machine: { readonly name: string }
}

/** Only a whole run may stand as the day's record of this machine. */
function isWhole({ quick, only, contenders }: Options): boolean {
  return !quick && only === undefined && contenders === undefined
}

function write(suffix: string, record: Stamped): string {
  const folder = path.join(import.meta.dirname, 'results')
  fs.mkdirSync(folder, { recursive: true })
  const file = path.join(folder, `${record.date.slice(0, 10)}-${record.machine.name}${suffix}.json`)
  fs.writeFileSync(file, `${JSON.stringify(record, null, 1)}\n`)
  return file
}

/** On a terminal one line that is overwritten; in a log a line each. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\u001b[K${text}`)
  else if (text !== '') process.stderr.write(`${text}\n`)
}

await main()

import { randomBytes } from 'node:crypto'
import { parseArgs } from 'node:util'
import { Pool } from 'pg'
import { type PostgresServer, startPostgres, volatileSettings } from '../../scripts/postgres-server.ts'
import { defineApp } from '../../src/index.ts'
import { type ControlName, controls } from './controls.ts'
import { printControl, printReport } from './print.ts'
import { type ControlDatabase, runControl } from './run-controls.ts'
import { runFleet } from './run-fleet.ts'
import type { WorkloadName } from './workload.ts'
import { workloadNames } from './workloads.ts'

const HELP = `npm run histories -- [options]

  --minutes N       how long faults are made, from 0.1 (default 1); the least number of faults that must hit grows with it
  --seed S          what clients do, which faults hit, and when (default 1)
  --workload NAME   only this one (${workloadNames.join(', ')}); may be given several times
  --control NAME    breaks the product so; exit code 0 if its checker noticed; may be given several times
  --controls        every control, one after the other
  --list            the controls

Exit code 0: every history is valid, had enough work in it, and every fault hit often enough. A failed run keeps its logs in a
folder.
`

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '1' },
    seed: { type: 'string', default: '1' },
    workload: { type: 'string', multiple: true },
    control: { type: 'string', multiple: true },
    controls: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

process.exitCode = await main()

async function main(): Promise<number> {
  const all = Object.keys(controls) as ControlName[]
  if (values.help) return say(HELP)
  if (values.list)
    return say(
      all
        .map((name) => `${name}: ${controls[name].noticedBy}, without ${controls[name].takesOut}\n`)
        .join(''),
    )
  const wanted = values.controls ? all : values.control
  if (wanted === undefined) return await runOnce()
  const unknown = wanted.filter((name) => !(name in controls))
  if (unknown.length > 0) return complain(`no such control: ${unknown.join(', ')}; --list shows them`)
  await using server = await startServer()
  let isCaught = true
  for (const name of wanted as ControlName[]) {
    await using database = await createMigrated(server)
    const result = await runControl(name, database)
    printControl(result)
    isCaught &&= result.caught
  }
  return isCaught ? 0 : 1
}

async function runOnce(): Promise<number> {
  const minutes = Number(values.minutes)
  const seed = Number(values.seed)
  if (!(minutes >= 0.1 && minutes <= 60) || !Number.isInteger(seed))
    return complain('--minutes is from 0.1 to 60, --seed a whole number')
  const names = (values.workload ?? workloadNames) as WorkloadName[]
  const unknown = names.filter((name) => !workloadNames.includes(name))
  if (unknown.length > 0) return complain(`no such workload: ${unknown.join(', ')}`)
  await using server = await startServer()
  await using database = await createMigrated(server)
  const report = await runFleet({ ...database, seed, seconds: minutes * 60, workloads: names })
  printReport(report)
  return report.ok ? 0 : 1
}

async function startServer(): Promise<PostgresServer> {
  return await startPostgres({ settings: { ...volatileSettings, max_connections: 200 } })
}

async function createMigrated(server: PostgresServer): Promise<ControlDatabase & AsyncDisposable> {
  const name = `histories_${randomBytes(4).toString('hex')}`
  const admin = new Pool({ connectionString: server.url(), max: 1 })
  await admin.query(`create database ${name}`)
  await admin.end()
  const url = server.url(name)
  await using app = defineApp({ name: 'histories', database: url, jobs: [] })
  await app.migrate()
  const pool = new Pool({ connectionString: url, max: 2 })
  // Sessions are ended on purpose.
  pool.on('error', () => {})
  return {
    url,
    sql: async (text, params = []) => (await pool.query<Record<string, unknown>>(text, [...params])).rows,
    [Symbol.asyncDispose]: async () => await pool.end(),
  }
}

function say(text: string): number {
  process.stdout.write(text)
  return 0
}

function complain(text: string): number {
  console.error(text)
  return 2
}

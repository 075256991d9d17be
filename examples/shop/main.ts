import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { parseArgs } from 'node:util'
import { createDisplay, format } from './display.ts'
import { runEmbedded } from './embedded.ts'
import { startMailServers } from './mail-servers.ts'
import { runOnServer } from './on-server.ts'
import { formatOrders, makeOrders } from './orders.ts'
import { createRandom } from './random.ts'
import { writeReport } from './report.ts'
import { judge } from './verdict.ts'

const usage = `Usage: npm run demo -- [options]

  --orders N   orders in the file, 100 to 5000 (default 900; 300 with --pglite)
  --seed N     repeats the orders, rollbacks and plan of faults of the run that printed N (default: a new one)
  --pglite     everything in one process, on the embedded database: no kills
`

/** The demo ends within a minute, whatever happens; the rest is for ending the workers and the report. */
const TIME_LIMIT_MS = 48_000
/** Past this something hangs that was asked to end: no report can be trusted. */
const HANG_LIMIT_MS = 58_000
/** Orders come in over this time, however many they are: the faults need time between them. */
const RUSH_SECONDS = 15
const ROLLBACK_SHARE = 0.08

interface Options {
  readonly orders: number
  readonly seed: number
  readonly pglite: boolean
}

async function main(options: Options): Promise<number> {
  const startedAt = performance.now()
  const end = new AbortController()
  const timer = setTimeout(() => end.abort(), TIME_LIMIT_MS)
  const watchdog = setTimeout(exitHung, HANG_LIMIT_MS)
  const random = createRandom(options.seed)
  const display = createDisplay(process.stdout)
  const folder = mkdtempSync(path.join(os.tmpdir(), 'holdfast-shop-'))
  // At exit, so that Ctrl-C, too, leaves nothing behind.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }))

  try {
    const orders = makeOrders(options.orders, random)
    const file = path.join(folder, 'orders.csv')
    writeFileSync(file, formatOrders(orders))
    display.note(`${format(orders.length)} orders in ${file}, seed ${options.seed}`)

    await using mailServers = await startMailServers(() => random.integer(5, 60))
    const { provider, plain } = mailServers
    display.note(`the mail provider listens on port ${provider.port}, the plain mail server on ${plain.port}`)
    const run = options.pglite ? runEmbedded : runOnServer
    const { evidence, database } = await run({
      orders,
      file,
      seed: options.seed,
      ordersPerSecond: orders.length / RUSH_SECONDS,
      rollbackShare: ROLLBACK_SHARE,
      mailServers,
      display,
      signal: end.signal,
    })

    const durationMs = performance.now() - startedAt
    const mode = options.pglite ? 'embedded' : 'server'
    const report = writeReport(judge(evidence), { mode, database, seed: options.seed, durationMs })
    display.close()
    process.stdout.write(report.text)
    return report.exitCode
  } finally {
    clearTimeout(timer)
    clearTimeout(watchdog)
    end.abort()
    display.close()
  }
}

function exitHung(): void {
  process.stderr.write(`\nThe run hangs: it did not end within ${HANG_LIMIT_MS / 1_000} s.\n`)
  process.exit(1)
}

function readOptions(): Options {
  const { values } = parseArgs({
    options: {
      orders: { type: 'string' },
      seed: { type: 'string', default: String(Math.floor(Math.random() * 1_000_000)) },
      pglite: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  })
  if (values.help) {
    process.stdout.write(usage)
    process.exit(0)
  }
  return {
    orders: toInteger('--orders', values.orders ?? (values.pglite ? '300' : '900'), { min: 100, max: 5_000 }),
    seed: toInteger('--seed', values.seed, { min: 0, max: 2 ** 32 - 1 }),
    pglite: values.pglite,
  }
}

function toInteger(name: string, text: string, { min, max }: { min: number; max: number }): number {
  const value = Number(text)
  if (text.trim() !== '' && Number.isInteger(value) && value >= min && value <= max) return value
  throw new Error(`${name} takes a whole number from ${min} to ${max}, not "${text}"`)
}

let options: Options
try {
  options = readOptions()
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n\n${usage}`)
  process.exit(2)
}

// Ctrl-C: exit hooks end the children and the database.
process.once('SIGINT', () => process.exit(130))
process.once('SIGTERM', () => process.exit(143))
process.exitCode = await main(options)

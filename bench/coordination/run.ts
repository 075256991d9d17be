import { Client } from 'pg'
import { startPostgres } from '../../scripts/postgres-server.ts'
import { machine } from '../machine.ts'
import { SETTINGS } from '../measure/bench.ts'
import { median } from '../measure/statistics.ts'
import type { Contender, OperationName } from './contender.ts'
import { openHoldfast } from './holdfast.ts'
import { handOver, rateOf } from './measure.ts'
import { openAdvisory, openHandWritten, openRaw } from './raw.ts'
import { openRedis } from './redis.ts'

/**
 * `npm run bench -- coordination [rounds [milliseconds]]`: locks, keys and scripts beside plain SQL that does the same by
 * hand, for a script one function over the SQL functions of keys, advisory locks, and Redis. In each round every contender has
 * every operation once, in one lane and in sixteen; what is told is the median of rounds, and the median of the ratios
 * within a round. Ends with 1 if a bar is missed: bars are for one lane; sixteen keep every processor busy, and compare what
 * processor time each takes.
 */
const rounds = Number(process.argv[2] ?? 15)
const ms = Number(process.argv[3] ?? 400)
const LANES = [1, 16]
const OPERATIONS: readonly OperationName[] = ['lock', 'get', 'set', 'compareAndSet', 'script']
const WAITERS = 20
const GRANTS = 200
/** Of raw SQL's rate; a script may take 1.5 times as long as the same work in one function written by hand. */
const BARS: Readonly<Record<OperationName, number>> = {
  lock: 0.8,
  get: 0.8,
  set: 0.8,
  compareAndSet: 0.8,
  script: 1 / 1.5,
}

await using server = await startPostgres({ settings: SETTINGS })
const admin = new Client({ connectionString: server.url() })
await admin.connect()
const urlOf = async (name: string) => {
  await admin.query(`create database ${name}`)
  return server.url(name)
}
const connections = Math.max(...LANES)
const raw = await openRaw(await urlOf('raw'), connections)
const holdfastUrl = await urlOf('holdfast')
// Scripts make new keys all the time: in a database of their own, what that takes from the server is theirs.
const scriptsUrl = await urlOf('scripts')
const scripts = await openHoldfast(scriptsUrl, connections, 'persistent')
const byHand = await openHandWritten(scriptsUrl, connections)
const holdfast = withScripts(await openHoldfast(holdfastUrl, connections, 'persistent'), scripts)
const contenders: Contender[] = [
  raw,
  holdfast,
  await openHoldfast(holdfastUrl, connections, 'ephemeral'),
  byHand,
  await openAdvisory(await urlOf('advisory'), connections),
]
try {
  contenders.push(await openRedis())
} catch (error) {
  console.log(`without Redis: ${String(error)}`)
}

const rates = new Map<string, number[]>()
const cellOf = (operation: string, lanes: number, { name }: Contender) => `${operation} ${lanes} ${name}`
let from = 0
for (let round = 0; round <= rounds; round += 1)
  // Another begins in each round, and every other goes the other way: what comes later finds a warmer machine. Many short
  // rounds rather than few long ones: what the machine does meanwhile is then the same for those that are compared.
  for (const operation of OPERATIONS)
    for (const lanes of LANES)
      for (const contender of rotated(contenders, round)) {
        const run = contender.operations[operation]
        if (!run) continue
        from += 1_000_000
        const rate = await rateOf(run, lanes, round === 0 ? ms / 2 : ms, from)
        // The first round is for the compilers and caches.
        const cell = cellOf(operation, lanes, contender)
        if (round > 0) rates.set(cell, [...(rates.get(cell) ?? []), rate])
      }

console.log(JSON.stringify({ ...machine(), rounds, ms }))
console.log(
  '| operation | lanes | contender | a second | × raw SQL, or function by hand |\n| --- | --- | --- | --- | --- |',
)
let missed = 0
for (const operation of OPERATIONS)
  for (const lanes of LANES)
    for (const contender of contenders) {
      const own = rates.get(cellOf(operation, lanes, contender))
      if (!own) continue
      const base = rates.get(cellOf(operation, lanes, operation === 'script' ? byHand : raw)) ?? []
      const ratio = median(own.map((rate, round) => rate / (base[round] ?? Number.NaN)))
      const isHeld = contender === holdfast && lanes === 1
      const isMet = ratio >= BARS[operation]
      if (isHeld && !isMet) missed += 1
      const bar = isHeld ? ` (bar ${BARS[operation].toFixed(2)}: ${isMet ? 'met' : 'MISSED'})` : ''
      console.log(
        `| ${operation} | ${lanes} | ${contender.name} | ${median(own).toFixed(0)} | ${ratio.toFixed(2)}${bar} |`,
      )
    }

console.log(`\n| hand-over, ${WAITERS} waiters | p50 ms | p99 ms |\n| --- | --- | --- |`)
for (const contender of contenders) {
  const idle = await handOver(contender, WAITERS, GRANTS)
  if (idle) console.log(`| ${contender.name} | ${idle.p50.toFixed(1)} | ${idle.p99.toFixed(1)} |`)
}
for (const contender of contenders) await contender.close()
await admin.end()
process.exitCode = missed === 0 ? 0 : 1

function withScripts(contender: Contender, { operations, close }: Contender): Contender {
  const { script } = operations
  return {
    ...contender,
    operations: { ...contender.operations, ...(script ? { script } : {}) },
    close: async () => {
      await contender.close()
      await close()
    },
  }
}

function rotated<T>(items: readonly T[], by: number): readonly T[] {
  const cut = by % items.length
  const turned = [...items.slice(cut), ...items.slice(0, cut)]
  return by % 2 === 0 ? turned : turned.reverse()
}

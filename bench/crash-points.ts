import { z } from 'zod'
import { defineApp, defineJob, resource } from '../src/index.ts'
import { createTestApp, everyCrashPoint } from '../src/testing/testing.ts'
import { machine } from './machine.ts'
import { median } from './measure/statistics.ts'

/**
 * `npx tsx bench/crash-points.ts [rounds]`: how long it takes to kill a handler of three steps (two effects and its
 * commit) at each of its 11 crash points, beside running the same job as often undisturbed, each on a fresh database of
 * the test kit. Bar: 2 s of wall for the enumeration.
 */
const rounds = Number(process.argv[2] ?? 5)
const BAR_MS = 2000
/** Runs of an enumeration: the undisturbed one, and one for each point. */
const RUNS = 12

const provider = resource({ name: 'provider', provides: ['send:email', 'send:sms'], create: () => null })
const job = defineJob({
  name: 'three-steps',
  input: z.object({ orderId: z.string() }),
  idempotent: true,
  effects: ['send:email', 'send:sms'],
  uses: { provider },
  handler: async (ctx, { orderId }) => {
    await ctx.effect('send:email', { key: orderId, ifUncertain: 'repeat' }, () => 'receipt')
    await ctx.effect('send:sms', { key: orderId, ifUncertain: 'repeat' }, () => 'receipt')
    await ctx.commit(
      async (tx) => await tx.query(`update orders set status = 'sent' where id = $1`, [orderId]),
    )
  },
})
const app = defineApp({ name: 'bench', database: 'pglite:memory:', jobs: [job] })
const setup = `create table orders (id text primary key, status text); insert into orders values ('42', 'confirmed')`

async function timed(work: () => Promise<void>): Promise<number> {
  const startMs = performance.now()
  await work()
  return performance.now() - startMs
}

async function enumerate(): Promise<void> {
  const report = await everyCrashPoint(app, job, { orderId: '42' }, { setup })
  report.assert()
  if (report.points.length !== RUNS - 1) throw new Error(`${report.points.length} points, not ${RUNS - 1}`)
}

async function runUndisturbed(): Promise<void> {
  for (let run = 0; run < RUNS; run += 1) {
    await using t = await createTestApp(app, { setup })
    await t.app.enqueue(job, { orderId: '42' })
    const { completed } = await t.drain()
    if (completed.length !== 1) throw new Error('the job did not complete')
  }
}

// The first of each makes the database that later ones are copies of, and is compiled.
await enumerate()
await runUndisturbed()
const enumerations: number[] = []
const undisturbed: number[] = []
for (let round = 0; round < rounds; round += 1) {
  enumerations.push(await timed(enumerate))
  undisturbed.push(await timed(runUndisturbed))
}
console.log(JSON.stringify({ ...machine(), rounds }))
const ms = median(enumerations)
console.log(`every crash point of three steps: ${ms.toFixed(0)} ms (bar ${BAR_MS})`)
console.log(
  `as many undisturbed runs: ${median(undisturbed).toFixed(0)} ms, ratio ${(ms / median(undisturbed)).toFixed(2)}`,
)
process.exitCode = ms <= BAR_MS ? 0 : 1

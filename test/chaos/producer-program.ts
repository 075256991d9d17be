import { setTimeout as delay } from 'node:timers/promises'
import { HoldfastError, type JobToEnqueue, type Transaction } from '../../src/index.ts'
import { listenToTest } from '../support/program.ts'
import { chaosApp, type JobName } from './chaos-app.ts'
import { openHistory } from './history-log.ts'
import { seededRandom } from './random.ts'

/**
 * A producer of a chaos run: enqueues in every way there is, and notes before each call what it intends (`intent`)
 * and after it what came of it: `ack`, `rolled-back`, `failed` (nothing was changed) or `unknown`. An intent with no
 * such line is unknown too: the process died.
 */

const settings = JSON.parse(process.env['CHAOS'] ?? '{}') as {
  readonly url: string
  readonly leaseMs: number
  readonly history: string
  readonly marks: string
  readonly name: string
  readonly seed: number
  readonly provider: string
  readonly everyMs: number
}
const note = openHistory(settings.history)
note('life', { pid: process.pid })
listenToTest()
const random = seededRandom(settings.seed, settings.name)
const { app, jobs } = chaosApp({ ...settings, note, knowsRare: true })

class RolledBackOnPurpose extends Error {}

let stopping = false
let nextKey = 0
const recent: string[] = []
const underWay = new Set<Promise<void>>()
process.once('SIGTERM', () => {
  stopping = true
})

const ways = [
  ...times(5, plain),
  ...times(4, inTransaction),
  ...times(2, withSavepoint),
  ...times(3, unique),
  ...times(4, idempotent),
  ...times(2, later),
  ...times(1, bulk),
  ...times(1, bySql),
  ...times(2, cancelSome),
]
note('ready')
while (!stopping) {
  const call = random.pick(ways)()
  underWay.add(call)
  void call.finally(() => underWay.delete(call))
  // A producer in front of a database that is away does not pile up calls without end.
  if (underWay.size > 30) await Promise.race(underWay)
  await delay(settings.everyMs * (0.5 + random.next()))
}
await Promise.all(underWay)
await app.close()
note('stopped')

function times<T>(count: number, value: T): T[] {
  return Array.from({ length: count }, () => value)
}

function newKey(): string {
  nextKey += 1
  return `${settings.name}-${process.pid}-${nextKey}`
}

function someJob(): { readonly name: JobName; readonly input: Record<string, unknown> } {
  const key = newKey()
  const roll = random.next()
  if (roll < 0.28) return { name: 'steady', input: { key, ms: random.whole(5, 300) } }
  if (roll < 0.46) return { name: 'instant', input: { key } }
  if (roll < 0.67) return someEffectJob(key)
  if (roll < 0.73) return { name: 'long', input: { key, ms: random.whole(300, 1200) } }
  if (roll < 0.83) return { name: 'flaky', input: { key, failures: random.whole(1, 3) } }
  if (roll < 0.87) return { name: 'hopeless', input: { key } }
  if (roll < 0.9) return { name: 'refused', input: { key } }
  if (roll < 0.96) return { name: 'snoozer', input: { key } }
  return { name: 'rare', input: { key } }
}

function someEffectJob(key: string): { readonly name: JobName; readonly input: Record<string, unknown> } {
  const name = random.pick([
    'repeater',
    'repeater',
    'confirmer',
    'confirmer',
    'asker',
    'committer',
    'committer',
    'resumer',
  ] as const)
  if (name === 'resumer') return { name, input: { key, ms: random.whole(200, 1200) } }
  return { name, input: { key, ms: random.whole(0, 60), failures: random.chance(0.2) ? 1 : 0 } }
}

/** Notes what was intended, calls, and notes what came of it. */
async function noted(
  way: string,
  keys: readonly string[],
  call: () => Promise<readonly { readonly id: string; readonly status: string }[]>,
  facts: Readonly<Record<string, unknown>> = {},
): Promise<'done' | 'unknown' | 'failed'> {
  note('intent', { way, keys, ...facts })
  try {
    const answers = await call()
    note('ack', {
      way,
      keys,
      ids: answers.map(({ id }) => id),
      statuses: answers.map(({ status }) => status),
      ...facts,
    })
    for (const { id } of answers) recent.push(id)
    if (recent.length > 60) recent.splice(0, recent.length - 60)
    return 'done'
  } catch (error) {
    if (error instanceof RolledBackOnPurpose) {
      note('rolled-back', { way, keys })
      return 'failed'
    }
    const isUnknown = error instanceof HoldfastError && error.changed === 'unknown'
    note(isUnknown ? 'unknown' : 'failed', { way, keys, error: String(error) })
    return isUnknown ? 'unknown' : 'failed'
  }
}

async function plain(): Promise<void> {
  const { name, input } = someJob()
  await noted('plain', [keyOf(input)], async () => [await app.enqueue(jobs[name], input)])
}

async function inTransaction(): Promise<void> {
  const { name, input } = someJob()
  const rollBack = random.chance(0.3)
  await noted(
    'transaction',
    [keyOf(input)],
    async () =>
      await app.transaction(async (tx) => {
        await order(tx, input)
        const answer = await tx.enqueue(jobs[name], input)
        if (random.chance(0.3)) await delay(random.whole(1, 40))
        if (rollBack) throw new RolledBackOnPurpose()
        return [answer]
      }),
  )
}

/** What is enqueued after a savepoint goes with it; what comes after the return to it stays. */
async function withSavepoint(): Promise<void> {
  const given = someJob()
  const lost = someJob()
  note('intent', { way: 'savepoint', keys: [keyOf(lost.input)] })
  await noted(
    'transaction',
    [keyOf(given.input)],
    async () =>
      await app.transaction(async (tx) => {
        await tx.query('savepoint before_job')
        await order(tx, lost.input)
        await tx.enqueue(jobs[lost.name], lost.input)
        await tx.query('rollback to savepoint before_job')
        await order(tx, given.input)
        return [await tx.enqueue(jobs[given.name], given.input)]
      }),
  )
  note('rolled-back', { way: 'savepoint', keys: [keyOf(lost.input)] })
}

async function unique(): Promise<void> {
  const key = newKey()
  const uniqueKey = `unique-${random.whole(1, 20)}`
  const input = { key, ms: random.whole(20, 400) }
  if (random.chance(0.6)) {
    await noted('unique', [key], async () => [await app.enqueue(jobs.steady, input, { uniqueKey })], {
      uniqueKey,
    })
    return
  }
  const rollBack = random.chance(0.4)
  await noted(
    'unique',
    [key],
    async () =>
      await app.transaction(async (tx) => {
        const answer = await tx.enqueue(jobs.steady, input, { uniqueKey })
        await delay(random.whole(1, 60))
        if (rollBack) throw new RolledBackOnPurpose()
        return [answer]
      }),
    { uniqueKey },
  )
}

/** Repeats until it has an answer, as a caller with an idempotency key may; sometimes once more for nothing. */
async function idempotent(): Promise<void> {
  const { name, input } = someJob()
  const idempotencyKey = keyOf(input)
  const call = async () =>
    await noted('idempotent', [idempotencyKey], async () => [
      await app.enqueue(jobs[name], input, { idempotencyKey }),
    ])
  for (;;) {
    const came = await call()
    if (came === 'done') break
    await delay(100)
  }
  if (random.chance(0.2)) await call()
}

async function later(): Promise<void> {
  const { name, input } = someJob()
  const ms = random.whole(200, 3000)
  const when = random.chance(0.5) ? { delayMs: ms } : { runAt: new Date(Date.now() + ms) }
  await noted('later', [keyOf(input)], async () => [await app.enqueue(jobs[name], input, when)])
}

async function bulk(): Promise<void> {
  const many: JobToEnqueue[] = Array.from({ length: random.whole(5, 25) }, () => {
    const { name, input } = someJob()
    return { job: jobs[name], input }
  })
  await noted(
    'bulk',
    many.map(({ input }) => keyOf(input as Record<string, unknown>)),
    async () => await app.enqueueMany(many),
  )
}

async function bySql(): Promise<void> {
  const { name, input } = someJob()
  await noted(
    'sql',
    [keyOf(input)],
    async () =>
      await app.transaction(async (tx) => {
        await order(tx, input)
        const { rows } = await tx.query<{ id: string; status: string }>(
          'select id::text, status from holdfast.enqueue($1, $2)',
          [name, JSON.stringify(input)],
        )
        return rows
      }),
  )
}

async function cancelSome(): Promise<void> {
  const id =
    recent.length > 0 && random.chance(0.7)
      ? recent.at(-random.whole(1, Math.min(8, recent.length)))
      : undefined
  if (id === undefined) return
  note('cancel-intent', { job: id })
  try {
    const answer = await app.job(id).cancel({ reason: 'chaos' })
    note('cancel', { job: id, ...answer })
  } catch (error) {
    note('cancel-failed', { job: id, error: String(error) })
  }
}

/** A row of the application's own, which must share the fate of the job. */
async function order(tx: Transaction, input: Record<string, unknown>): Promise<void> {
  await tx.query('insert into orders (key) values ($1)', [keyOf(input)])
}

function keyOf(input: Record<string, unknown>): string {
  return String(input['key'])
}

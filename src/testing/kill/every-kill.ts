import { pathToFileURL } from 'node:url'
import { type App, defineApp } from '../../app/app.ts'
import { checkNumber } from '../../base/check.ts'
import { limits } from '../../base/limits.ts'
import { run } from '../../driver/operation.ts'
import type { AnyJob, JobInput } from '../../jobs/define-job.ts'
import type { EnqueueOptions } from '../../jobs/enqueue-options.ts'
import { toComparable } from '../crash/compare.ts'
import { type CrashPoint, CrashReport } from '../crash/crash-report.ts'
import { type CrashRun, calledOf } from '../crash/crash-run.ts'
import { pointOf } from '../crash/every-crash-point.ts'
import type { ObservedJob } from '../crash/observe.ts'
import { listEffects } from '../sql/list-effects.ts'
import { listEnqueued } from '../sql/list-enqueued.ts'
import { runChild } from './kill-child.ts'

/** The database of a run, from outside the processes that were killed. */
export interface KillWorld {
  readonly app: App
  /** Runs a statement with `$1` placeholders, in a transaction of its own; gives its rows. */
  readonly query: <R = Record<string, unknown>>(
    text: string,
    values?: readonly unknown[],
  ) => Promise<readonly R[]>
}

/** What {@link everyKill} takes. */
export interface KillOptions {
  /** The app file, as `holdfast worker` takes it: its default export is the application, with the same job. */
  readonly appFile: string
  /** Gives the address of a database of PostgreSQL for each run: empty, and nobody else's. */
  readonly database: () => string | Promise<string>
  /** Makes what the app needs in the database, and empties what is outside of it. Default: nothing. */
  readonly setup?: ((world: KillWorld) => unknown) | undefined
  /** What counts when all has come to its end; see {@link everyCrashPoint}. */
  readonly observe: (world: KillWorld & { readonly job: ObservedJob }) => unknown
  /** Options of the job's enqueue, such as its unique key. Default: none. */
  readonly enqueue?: Omit<EnqueueOptions, 'tx'> | undefined
  /** How long a killed worker's job waits for another one, in milliseconds. Default: 1,000. */
  readonly leaseMs?: number | undefined
  /** How long a process may run, in milliseconds. Default: 30,000. */
  readonly timeoutMs?: number | undefined
}

interface KillPlan extends KillOptions {
  readonly job: AnyJob
  readonly given: App
  readonly input: unknown
  readonly leaseMs: number
  readonly timeoutMs: number
}

const LEASE_MS = 1000
const TIMEOUT_MS = 30_000

/**
 * As {@link everyCrashPoint}, with nothing played: the worker is a process of its own on a PostgreSQL server, killed by SIGKILL as it stands
 * at a step, and a second process takes over when the lease has passed. Takes some three seconds for each step.
 *
 * @returns The report.
 * @throws {Error} A process failed, or did not end within `timeoutMs`.
 * @throws {InvalidArgumentError} An option is out of range. What `database`, `setup`, `observe` and `app.enqueue` throw.
 *
 * @example
 * const report = await everyKill(app, sendConfirmation, { orderId: '42' }, {
 *   appFile: 'app.ts',
 *   database: async () => await createEmptyDatabase(),
 *   setup: async ({ query }) => await query('create table orders (id text primary key, status text)'),
 *   observe: async ({ query }) => ({ received: mailServer.received, orders: await query('select * from orders') }),
 * })
 */
export async function everyKill<J extends AnyJob>(
  app: App,
  job: J,
  input: JobInput<J>,
  options: KillOptions,
): Promise<CrashReport> {
  const leaseMs = checkNumber('leaseMs', options.leaseMs ?? LEASE_MS, limits.leaseMs)
  const timeoutMs = checkNumber('timeoutMs', options.timeoutMs ?? TIMEOUT_MS, limits.timeoutMs) ?? TIMEOUT_MS
  const plan: KillPlan = { ...options, given: app, job, input, leaseMs, timeoutMs }
  const undisturbed = await killRun(plan, undefined)
  const points: CrashPoint[] = []
  for (let step = 1; step <= undisturbed.steps.length; step += 1) {
    const disturbed = await killRun(plan, step)
    points.push(pointOf(step, undisturbed.steps[step - 1] ?? '', { undisturbed, run: disturbed }))
  }
  return new CrashReport({ job: job.name, expected: undisturbed.seen, points })
}

async function killRun(plan: KillPlan, target: number | undefined): Promise<CrashRun> {
  const { given, job, input, leaseMs, timeoutMs, appFile } = plan
  const database = await plan.database()
  const { maxConnections: _, pooler: __, ...options } = given.internals.options
  await using app = defineApp({ ...options, database, leaseMs })
  await app.migrate()
  const world: KillWorld = {
    app,
    query: async <R>(text: string, values: readonly unknown[] = []) =>
      (await app.transaction(async (tx) => await tx.query<R>(text, values))).rows,
  }
  await plan.setup?.(world)
  const { id } = await app.enqueue(job, input, plan.enqueue)
  const order = { appUrl: pathToFileURL(appFile).href, database, leaseMs, jobId: id }
  const first = await runChild({ ...order, target }, timeoutMs)
  const second = first.wasKilled ? await runChild({ ...order, target: undefined }, timeoutMs) : undefined
  const own = app.internals.database
  const stored = (await run(own, listEnqueued, {})).find((each) => each.id === id)
  const state = stored?.state ?? 'gone'
  const seen = await plan.observe({ ...world, job: { id, state, result: stored?.result ?? undefined } })
  const effects = await run(own, listEffects, {})
  return {
    steps: first.steps,
    diedAt: first.wasKilled ? first.steps.at(-1) : undefined,
    attempts: first.attempts + (second?.attempts ?? 0),
    state,
    reason: stored?.reason ?? undefined,
    seen: toComparable(seen),
    effects: effects.map((each) => calledOf(each)),
  }
}

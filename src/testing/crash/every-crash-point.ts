import type { App } from '../../app/app.ts'
import { InvalidArgumentError } from '../../base/errors.ts'
import type { AnyJob, JobInput } from '../../jobs/define-job.ts'
import type { EnqueueOptions } from '../../jobs/enqueue-options.ts'
import { type Fake, fake, isFake } from '../fake.ts'
import type { TestAppOptions } from '../test-app.ts'
import { differencesOf, isWithin } from './compare.ts'
import { type CrashPoint, CrashReport } from './crash-report.ts'
import { type CrashRun, type CrashRunPlan, crashRun } from './crash-run.ts'
import { type CrashWorld, observeAll } from './observe.ts'

/** What {@link everyCrashPoint} takes. Undeclared writes are ignored unless it says otherwise. */
export interface CrashPointOptions extends TestAppOptions {
  /**
   * What stands in for resources, by their names. Fakes are emptied before each run. Default: a fake without an implementation for each
   * resource that is not named, so that nothing reaches the outside.
   */
  readonly resources?: TestAppOptions['resources']
  /**
   * What counts when all has come to its end: what reached the outside, and what is in the database; anything that JSON can hold. It is
   * compared with that of the undisturbed run, so leave out what differs by itself. Default: the job's result, the calls of its resources,
   * the jobs that were enqueued, and the rows of your tables without their points in time and drawn keys. A call that carries the
   * idempotency key of an effect counts once there, as it does for a provider that knows such keys.
   */
  readonly observe?: ((world: CrashWorld) => unknown) | undefined
  /** Options of the job's enqueue, such as its unique key. Default: none. */
  readonly enqueue?: Omit<EnqueueOptions, 'tx'> | undefined
  /** Steps that a handler may take at most. Default: 200. */
  readonly maxSteps?: number | undefined
  /** How long each run may take, in real milliseconds. Default: 4,000. */
  readonly timeoutMs?: number | undefined
}

const MAX_STEPS = 200
const TIMEOUT_MS = 4000

/**
 * Kills a handler at each step that it takes, one run for each, and tells what was done twice or not at all.
 *
 * The first run is undisturbed and counts the steps: around each effect, transaction, commit, checkpoint and enqueue of the context, each
 * call of a fake, and the handler's end. Each further run starts from a fresh state, `setup` included, and dies at the next step, as by
 * a kill of the process: nothing that the attempt does afterwards reaches the database or a fake, its open transaction is rolled back,
 * its lease passes, and another worker takes the job over. When nothing is left to run, what `observe` gives is compared.
 *
 * What is kept outside the database, such as a list of mails sent, has to be emptied by `setup`.
 *
 * @returns The report. `report.assert()` throws unless dying does no harm anywhere.
 * @throws {DrainError} A run did not come to its end.
 * @throws {InvalidArgumentError} The handler takes more than `maxSteps` steps. What {@link createTestApp}, `enqueue`, `setup` and
 *   `observe` throw.
 *
 * @example
 * const report = await everyCrashPoint(app, sendConfirmation, { orderId: '42' }, {
 *   setup: async (t) => { mails.length = 0; await t.execute(schema) },
 *   observe: async ({ t }) => ({ mails, orders: await t.query('select id, status from orders order by id') }),
 * })
 * report.assert()
 */
export async function everyCrashPoint<J extends AnyJob>(
  app: App,
  job: J,
  input: JobInput<J>,
  options: CrashPointOptions = {},
): Promise<CrashReport> {
  const {
    observe = observeAll,
    enqueue = {},
    maxSteps = MAX_STEPS,
    timeoutMs = TIMEOUT_MS,
    ...given
  } = options
  const resources = { ...fakesOf(app), ...given.resources }
  const fakes = Object.values(resources).filter(isFake)
  const testApp: TestAppOptions = { undeclaredWrites: 'ignore', ...given, resources }
  const plan: CrashRunPlan = { app, job, input, enqueue, testApp, fakes, observe, timeoutMs }
  const undisturbed = await crashRun(plan, undefined)
  if (undisturbed.steps.length > maxSteps) {
    const problem = `is ${maxSteps}, and the handler takes ${undisturbed.steps.length} steps`
    throw new InvalidArgumentError({ field: 'maxSteps', problem })
  }
  const points: CrashPoint[] = []
  for (let step = 1; step <= undisturbed.steps.length; step += 1) {
    const run = await crashRun(plan, step)
    points.push(pointOf(step, undisturbed.steps[step - 1] ?? '', { undisturbed, run }))
  }
  return new CrashReport({ job: job.name, expected: undisturbed.seen, points })
}

function fakesOf(app: App): Readonly<Record<string, Fake>> {
  const { resources } = app.composition
  return Object.fromEntries([...resources].map(([name, each]) => [name, fake(each)]))
}

/** Reasons by which a job waits for a person because its process died, not because of what its handler did. */
const ASKING = ['effect-uncertain', 'worker lost on the last attempt']

/** What a run says of the step that it died at. */
export function pointOf(
  step: number,
  name: string,
  { undisturbed, run }: { readonly undisturbed: CrashRun; readonly run: CrashRun },
): CrashPoint {
  const { attempts, state, reason } = run
  const effects = run.effects.map((each) => ({ ...each, undisturbed: countOf(undisturbed, each.effect) }))
  const ended = reason === undefined ? state : `${state}: ${reason}`
  const facts = { step, name: run.diedAt ?? name, attempts, effects, ended }
  if (run.diedAt === undefined) return { ...facts, verdict: 'not-reached', ok: false, differences: [] }
  const differences = differencesOf(undisturbed.seen, run.seen)
  if (state === 'discarded' && ASKING.includes(reason ?? '') && undisturbed.state !== 'discarded')
    return { ...facts, verdict: 'asks', ok: isWithin(undisturbed.seen, run.seen), differences }
  const all =
    state === undisturbed.state
      ? differences
      : [`the job ended ${ended}; undisturbed it ends ${undisturbed.state}`, ...differences]
  const isSame = all.length === 0
  return { ...facts, verdict: isSame ? 'same' : 'differs', ok: isSame, differences: all }
}

function countOf({ effects }: CrashRun, effect: string): number {
  return effects.find((each) => each.effect === effect)?.calls ?? 0
}

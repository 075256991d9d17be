import type { App } from '../../app/app.ts'
import { run } from '../../driver/operation.ts'
import type { AnyJob } from '../../jobs/define-job.ts'
import type { EnqueueOptions } from '../../jobs/enqueue-options.ts'
import type { Fake } from '../fake.ts'
import { never } from '../scope.ts'
import { type LedgerEntry, listEffects } from '../sql/list-effects.ts'
import { listEnqueued } from '../sql/list-enqueued.ts'
import { openTestApp, type TestApp, type TestAppHooks, type TestAppOptions } from '../test-app.ts'
import { type Json, toComparable } from './compare.ts'
import type { CalledEffect } from './crash-report.ts'
import type { CrashWorld, ObservedCall } from './observe.ts'

export interface CrashRunPlan {
  readonly app: App
  readonly job: AnyJob
  readonly input: unknown
  readonly enqueue: Omit<EnqueueOptions, 'tx'>
  readonly testApp: TestAppOptions
  /** What stands in for resources and is emptied before each run. */
  readonly fakes: readonly Fake[]
  readonly observe: (world: CrashWorld) => unknown
  readonly timeoutMs: number
}

/** What a run was like, from the enqueue until nothing was left to do. */
export interface CrashRun {
  /** The steps that the handler took, over all attempts, in order. */
  readonly steps: readonly string[]
  /** Where it died; `undefined` if it did not come so far. */
  readonly diedAt: string | undefined
  readonly attempts: number
  readonly state: string
  readonly reason: string | undefined
  readonly seen: Json
  readonly effects: readonly CalledEffect[]
}

/** After the end of a lease. */
const LEASE_SLACK_MS = 1000

/**
 * Runs the job from a fresh state, killing its attempt at the `target`th step, if any: the process that ran it is gone, its lease
 * passes, and another worker takes over. Other jobs run undisturbed.
 */
export async function crashRun(plan: CrashRunPlan, target: number | undefined): Promise<CrashRun> {
  const { app, job, input, timeoutMs, fakes } = plan
  for (const each of fakes) each.reset()
  const watch = new Watch(target)
  await using t = await openTestApp(app, plan.testApp, { reached: watch.reached, untimed: true })
  t.app.events.on('attempt.started', ({ jobId }) => {
    if (jobId === watch.jobId) watch.attempts += 1
  })
  const { id } = await t.enqueue(job, input, plan.enqueue)
  watch.jobId = id
  await t.drain({ advance: true, timeoutMs })
  if (watch.diedAt !== undefined) {
    t.replaceWorker()
    await t.clock.advance(app.composition.leaseMs + LEASE_SLACK_MS)
    await t.drain({ advance: true, timeoutMs })
  }
  return await resultOf(t, watch, plan)
}

async function resultOf(t: TestApp, watch: Watch, plan: CrashRunPlan): Promise<CrashRun> {
  const { database } = t.app.internals
  const stored = (await run(database, listEnqueued, {})).find(({ id }) => id === watch.jobId)
  const job = {
    id: watch.jobId ?? '',
    state: stored?.state ?? 'gone',
    result: stored?.result ?? undefined,
  }
  const calls = plan.fakes.flatMap((each) => each.calls.map((call) => ({ ...call, resource: each.name })))
  const ledger = await run(database, listEffects, {})
  return {
    steps: watch.steps,
    diedAt: watch.diedAt,
    attempts: watch.attempts,
    state: job.state,
    reason: stored?.reason ?? undefined,
    seen: toComparable(await plan.observe({ t, job, calls })),
    effects: [...ledger.map((each) => calledOf(each)), ...countMethods(calls)],
  }
}

export function calledOf({ name, key, calls }: LedgerEntry): CalledEffect {
  return { effect: `${name} "${key}"`, calls }
}

function countMethods(calls: readonly ObservedCall[]): readonly CalledEffect[] {
  const counts = new Map<string, number>()
  for (const { resource, method } of calls) {
    const effect = method === '' ? resource : `${resource}.${method}`
    counts.set(effect, (counts.get(effect) ?? 0) + 1)
  }
  return [...counts].map(([effect, count]) => ({ effect, calls: count }))
}

/** Counts the steps of one job's attempts, and ends the life of the attempt that takes a certain one. */
class Watch {
  readonly #target: number | undefined
  readonly steps: string[] = []
  jobId: string | undefined
  diedAt: string | undefined
  attempts = 0

  constructor(target: number | undefined) {
    this.#target = target
  }

  readonly reached: NonNullable<TestAppHooks['reached']> = (step, claimed, life) => {
    if (life.isDead) return never
    if (claimed.id !== this.jobId) return undefined
    this.steps.push(step)
    if (this.diedAt !== undefined || this.steps.length !== this.#target) return undefined
    this.diedAt = step
    life.die()
    return never
  }
}

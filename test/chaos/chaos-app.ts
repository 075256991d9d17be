import fs from 'node:fs'
import path from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import {
  type AnyJob,
  type App,
  defineApp,
  defineJob,
  type JobContext,
  PermanentError,
} from '../../src/index.ts'
import { type Act, type EffectJobName, effectJobs, input } from './effect-jobs.ts'
import type { Note } from './history-log.ts'

/** The application that all processes of a chaos run share. */

export interface ChaosAppOptions {
  readonly url: string
  readonly leaseMs: number
  readonly note: Note
  /** Address of the provider double. */
  readonly provider: string
  /** Name of the process. */
  readonly name: string
  /** Folder for marks that outlive a process: what was snoozed once. */
  readonly marks: string
  /** False: the job `rare` is unknown here, and parked when claimed. */
  readonly knowsRare: boolean
}

export type ChaosJobs = Readonly<Record<JobName, AnyJob>>
export type JobName =
  | EffectJobName
  | 'instant'
  | 'steady'
  | 'long'
  | 'flaky'
  | 'hopeless'
  | 'refused'
  | 'snoozer'
  | 'pill'
  | 'rare'

/** What a job of that name ends as, unless it was cancelled. */
export const expectedEnds: Readonly<Record<JobName, readonly ('completed' | 'discarded')[]>> = {
  instant: ['completed'],
  steady: ['completed'],
  long: ['completed'],
  flaky: ['completed'],
  hopeless: ['discarded'],
  refused: ['discarded'],
  snoozer: ['completed'],
  pill: ['discarded'],
  rare: ['completed'],
  repeater: ['completed'],
  confirmer: ['completed'],
  // Where a call is in doubt, a person has to decide.
  asker: ['completed', 'discarded'],
  committer: ['completed'],
  resumer: ['completed'],
}

export function chaosApp(options: ChaosAppOptions): { readonly app: App; readonly jobs: ChaosJobs } {
  const jobs = chaosJobs(options)
  const { rare, ...common } = jobs
  const app = defineApp({
    name: 'chaos',
    database: options.url,
    jobs: Object.values(options.knowsRare ? { rare, ...common } : common),
    queues: { main: { concurrency: 6 }, side: { concurrency: 3 } },
    leaseMs: options.leaseMs,
    maxPollMs: 1000,
    shutdownMs: 300,
    shutdownGraceMs: 200,
    maxConnections: 5,
  })
  return { app, jobs }
}

function chaosJobs(options: ChaosAppOptions): ChaosJobs {
  const plain = plainJobs(options)
  const { note, name, provider } = options
  const noting = <C extends JobContext>(act: Act<C>) => noted(note, act)
  return { ...plain, ...effectJobs({ note, name, provider, noted: noting, child: plain.instant }) }
}

function plainJobs({
  note,
  marks,
}: ChaosAppOptions): Readonly<Record<Exclude<JobName, EffectJobName>, AnyJob>> {
  const retry = { type: 'fixed' as const, delayMs: 150 }
  const job = (name: JobName, queue: string, more: { maxAttempts?: number }, act: Act): AnyJob =>
    defineJob({ name, queue, input, idempotent: true, retry, ...more, handler: noted(note, act) })
  return {
    instant: job('instant', 'main', {}, async () => 'done'),
    // Deaf to its signal, as much of the world is: a worker that wakes from a stop tries to record it.
    steady: job('steady', 'main', {}, async (_, { ms = 20 }) => await delay(ms)),
    long: job(
      'long',
      'side',
      {},
      async (ctx, { ms = 800 }) => await delay(ms, undefined, { signal: ctx.signal }),
    ),
    flaky: job('flaky', 'main', {}, async (ctx, { failures = 1 }) => {
      await delay(5)
      if (ctx.job.attempt <= failures) throw new Error(`attempt ${ctx.job.attempt} of ${failures} that fail`)
    }),
    hopeless: job('hopeless', 'main', { maxAttempts: 2 }, async () => {
      await delay(5)
      throw new Error('never succeeds')
    }),
    refused: job('refused', 'main', {}, async () => {
      throw new PermanentError('can never succeed')
    }),
    snoozer: job('snoozer', 'main', {}, async (ctx) => {
      if (isFirstTime(marks, ctx.job.id)) ctx.snooze({ inMs: 300 })
    }),
    pill: job('pill', 'side', { maxAttempts: 3 }, async (ctx) => {
      await delay(30)
      note('pill', { job: ctx.job.id, token: ctx.job.fencingToken })
      process.kill(process.pid, 'SIGKILL')
      await delay(10_000)
    }),
    rare: job('rare', 'main', {}, async () => await delay(5)),
  }
}

function noted<C extends JobContext>(note: Note, act: Act<C>): Act<C> {
  return async (ctx, given) => {
    const { id, fencingToken, attempt, maxAttempts, name } = ctx.job
    const facts = { job: id, token: fencingToken }
    note('start', { ...facts, attempt, maxAttempts, name, key: given.key })
    try {
      const result = await act(ctx, given)
      note('end', { ...facts, how: 'returned' })
      return result
    } catch (error) {
      note('end', { ...facts, how: 'threw' })
      throw error
    }
  }
}

function isFirstTime(marks: string, jobId: string): boolean {
  try {
    fs.closeSync(fs.openSync(path.join(marks, jobId), 'wx'))
    return true
  } catch {
    return false
  }
}

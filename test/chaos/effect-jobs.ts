import { setTimeout as delay } from 'node:timers/promises'
import * as v from 'valibot'
import { type AnyJob, defineJob, type IfUncertain, type JobContext, resource } from '../../src/index.ts'
import type { Note } from './history-log.ts'
import { type Call, findReceipt } from './provider.ts'

/** The jobs of a chaos run that act on an outside, or commit with their own writes, or go on where they were. */

export const input = v.object({
  /** Business key: names the enqueue that made the job. */
  key: v.string(),
  /** How long the handler works. */
  ms: v.optional(v.number()),
  /** How many attempts fail before one succeeds. */
  failures: v.optional(v.number()),
  /** Key of the effect. Default: `key`. */
  effect: v.optional(v.string()),
})

export type Input = v.InferOutput<typeof input>
export type Act<C extends JobContext = JobContext> = (ctx: C, input: Input) => Promise<unknown>

export interface EffectJobOptions {
  readonly note: Note
  readonly noted: <C extends JobContext>(act: Act<C>) => Act<C>
  /** Address of the provider double. */
  readonly provider: string
  /** Name of this process. */
  readonly name: string
  /** What a commit enqueues. */
  readonly child: AnyJob
}

export type EffectJobName = 'repeater' | 'confirmer' | 'asker' | 'committer' | 'resumer'

export const SHARDS = 16
const STEPS = 8

/** Key of the job that the commit of another enqueues. */
export function childKey(jobId: string): string {
  return `child-of-${jobId}`
}

export function effectJobs(options: EffectJobOptions): Readonly<Record<EffectJobName, AnyJob>> {
  const { note, noted, child } = options
  const uses = { provider: providerOf(options) }
  const common = { input, idempotent: true, retry: { type: 'fixed', delayMs: 150 } } as const
  const caller = (name: EffectJobName, handler: Act<CallerContext>) =>
    defineJob({ ...common, name, queue: 'main', uses, effects: ['send:chaos'], handler: noted(handler) })
  return {
    repeater: caller(
      'repeater',
      async (ctx, given) => await actOutside(ctx, given, { note, ifUncertain: 'repeat' }),
    ),
    asker: caller('asker', async (ctx, given) => await actOutside(ctx, given, { note, ifUncertain: 'ask' })),
    confirmer: caller('confirmer', async (ctx, given) => {
      const ifUncertain: IfUncertain<unknown> = async ({ idempotencyKey, signal }) => {
        const result = await ctx.resources.provider.find(idempotencyKey, signal)
        return result === undefined ? { happened: false } : { happened: true, result }
      }
      await actOutside(ctx, given, { note, ifUncertain })
    }),
    committer: defineJob({
      ...common,
      name: 'committer',
      queue: 'main',
      effects: ['write:written', `enqueue:${child.name}`],
      handler: noted<JobContext>(async (ctx, given) => await commit(ctx, given, child)),
    }),
    resumer: defineJob({
      ...common,
      name: 'resumer',
      queue: 'side',
      handler: noted<JobContext>(async (ctx, given) => await resume(ctx, given, note)),
    }),
  }
}

interface Provider {
  call(call: Omit<Call, 'slot' | 'pid'>, signal: AbortSignal): Promise<unknown>
  find(idempotencyKey: string, signal: AbortSignal): Promise<unknown>
}

type CallerContext = JobContext<{ readonly provider: Provider }, 'send:chaos'>

function providerOf({ provider, name }: EffectJobOptions) {
  return resource<Provider>({
    name: 'provider',
    provides: ['send:chaos'],
    create: () => ({
      async call(call, signal) {
        const body = JSON.stringify({ ...call, slot: name, pid: process.pid })
        return await (await fetch(`${provider}/call`, { method: 'POST', body, signal })).json()
      },
      find: async (idempotencyKey, signal) => await findReceipt(provider, idempotencyKey, signal),
    }),
  })
}

async function actOutside(
  ctx: CallerContext,
  { key, ms = 5, failures = 0, effect = key }: Input,
  { note, ifUncertain }: { readonly note: Note; readonly ifUncertain: IfUncertain<unknown> },
): Promise<void> {
  const { id: job, fencingToken, attempt } = ctx.job
  const token = String(fencingToken)
  const result = await ctx.effect(
    'send:chaos',
    { key: effect, ifUncertain },
    async ({ idempotencyKey, signal }) =>
      await ctx.resources.provider.call({ job, token, key: effect, idempotencyKey }, signal),
  )
  note('effect', { job, key: effect, result: JSON.stringify(result) })
  // What the ledger knows has to hold for the attempts that follow.
  await delay(ms)
  if (attempt <= failures) throw new Error(`attempt ${attempt} of ${failures} that fail after their effect`)
}

async function commit(
  ctx: JobContext,
  { key, ms = 0, failures = 0 }: Input,
  child: AnyJob,
): Promise<unknown> {
  const { id, fencingToken, attempt } = ctx.job
  await delay(ms)
  if (attempt <= failures) throw new Error(`attempt ${attempt} of ${failures} that fail before their commit`)
  return await ctx.commit(async (tx) => {
    await tx.query('insert into commits (job, token, key) values ($1, $2, $3)', [
      id,
      String(fencingToken),
      key,
    ])
    await tx.query('update counters set n = n + 1 where shard = $1', [Number(BigInt(id) % BigInt(SHARDS))])
    await tx.effect('write:written', { key }, async () => {
      await tx.query('insert into written (key) values ($1)', [key])
    })
    await tx.enqueue(child, { key: childKey(id) })
    return { by: String(fencingToken) }
  })
}

async function resume(ctx: JobContext, { ms = 400 }: Input, note: Note): Promise<void> {
  const { id, fencingToken } = ctx.job
  const from = Number(ctx.job.checkpoint ?? 0)
  note('resumed', { job: id, token: fencingToken, from })
  // An attempt may have died between its last checkpoint and its last word about it.
  await ctx.progress(from / STEPS)
  for (let step = from + 1; step <= STEPS; step += 1) {
    await delay(ms / STEPS)
    await ctx.checkpoint(step)
    note('checkpointed', { job: id, token: fencingToken, step })
    await ctx.progress(step / STEPS, `step ${step} of ${STEPS}`)
  }
}

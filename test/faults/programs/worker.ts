import type { EventName } from '../../../src/base/events.ts'
import { defineApp, defineJob } from '../../../src/index.ts'
import { listenToTest, tell } from '../../support/program.ts'
import { aborted, anything } from '../handlers.ts'

/**
 * A worker process. Settings come as JSON in its first argument; it tells its events and what handlers go through.
 * Messages it takes: `stop` (and it ends by itself then), `enqueue`.
 */
interface Settings {
  readonly database: string
  readonly leaseMs?: number
  readonly maxPollMs?: number
  readonly concurrency?: number
  readonly shutdownMs?: number
  readonly shutdownGraceMs?: number
  readonly timeoutMs?: number
  readonly abortGraceMs?: number
  readonly maxAttempts?: number
  readonly pooler?: boolean
  readonly endProcessWhenStuck?: boolean
  /** How far this process's wall clock is off. */
  readonly clockOffMs?: number
}

interface Errand {
  /** `stay`: the first attempt lasts until its process is killed, the next returns. */
  readonly act: 'return' | 'die' | 'block' | 'wait' | 'sleep' | 'ignore' | 'stay'
  readonly ms?: number
}

const settings = JSON.parse(process.argv[2] ?? '{}') as Settings
const { clockOffMs = 0 } = settings
if (clockOffMs !== 0) {
  const now = Date.now
  globalThis.Date = class extends Date {
    constructor(...args: [] | [number]) {
      super(args[0] ?? now() + clockOffMs)
    }
    static override now(): number {
      return now() + clockOffMs
    }
  } as DateConstructor
}
const {
  database,
  leaseMs,
  maxPollMs,
  shutdownMs,
  shutdownGraceMs,
  timeoutMs,
  abortGraceMs,
  maxAttempts,
  pooler,
} = settings

const errand = defineJob({
  name: 'errand',
  input: anything<Errand>(),
  idempotent: true,
  retry: { type: 'fixed', delayMs: 0 },
  ...(maxAttempts === undefined ? {} : { maxAttempts }),
  ...(timeoutMs === undefined ? {} : { timeoutMs }),
  ...(abortGraceMs === undefined ? {} : { abortGraceMs }),
  async handler(ctx, { act, ms = 0 }) {
    const { id, attempt, fencingToken } = ctx.job
    tell('handling', { job: id, attempt, token: String(fencingToken), act })
    ctx.signal.addEventListener('abort', () => {
      tell('aborted', { job: id, attempt, reason: (ctx.signal.reason as Error).name })
    })
    if (act === 'die') process.kill(process.pid, 'SIGKILL')
    if (act === 'block') block(ms)
    if (act === 'sleep' || act === 'ignore') await tick(ms)
    if (act === 'wait' || (act === 'stay' && attempt === 1)) await aborted(ctx.signal)
    if (act !== 'ignore') ctx.signal.throwIfAborted()
    tell('handled', { job: id, attempt })
    return { attempt }
  },
})

/** In short steps, so that a process that was stopped meanwhile still has them before it. */
async function tick(ms: number): Promise<void> {
  for (let left = ms; left > 0; left -= 50) await new Promise((resolve) => setTimeout(resolve, 50))
}

/** As an endless computation does, without the heat. */
function block(ms: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms)
}

const app = defineApp({
  name: 'program',
  database,
  jobs: [errand],
  queues: { default: { concurrency: settings.concurrency ?? 10 } },
  ...(leaseMs === undefined ? {} : { leaseMs }),
  ...(maxPollMs === undefined ? {} : { maxPollMs }),
  ...(shutdownMs === undefined ? {} : { shutdownMs }),
  ...(shutdownGraceMs === undefined ? {} : { shutdownGraceMs }),
  ...(pooler === undefined ? {} : { pooler }),
})
for (const name of [
  'job.completed',
  'lease.lost',
  'write.refused',
  'jobs.rescued',
  'loop.blocked',
  'worker.error',
] as EventName[]) {
  app.events.on(name, (facts) =>
    tell(
      name,
      JSON.parse(
        JSON.stringify(facts, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value)),
      ) as Record<string, unknown>,
    ),
  )
}

const worker = app.worker({ endProcessWhenStuck: settings.endProcessWhenStuck ?? false })

async function stop(): Promise<void> {
  const closed = app.close()
  tell('stopping')
  await closed
  tell('stopped')
  process.stdin.destroy()
}
process.once('SIGTERM', () => void stop())

listenToTest((message) => {
  if (message.kind === 'stop') void stop()
  if (message.kind === 'enqueue')
    void app.enqueue(errand, message['input'] as Errand).then(({ id }) => tell('enqueued', { id }))
})
await worker.start()
tell('ready', { workerId: String(worker.id), resources: process.getActiveResourcesInfo() })

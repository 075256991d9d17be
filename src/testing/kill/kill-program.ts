import { hostname } from 'node:os'
import { type App, defineApp } from '../../app/app.ts'
import { version } from '../../app/version.ts'
import { sleep } from '../../base/sleep.ts'
import { attemptServices } from '../attempt-services.ts'
import { readEnqueued } from '../expect-enqueued.ts'
import { never } from '../scope.ts'
import { TestWorker } from '../test-worker.ts'
import type { KillMessage, KillOrder } from './messages.ts'

/** The process that a worker runs in, and that is killed. Takes its order from the parent, and ends with it. */

const POLL_MS = 20
const ATTEMPT_MS = 60_000
const ENDED: readonly string[] = ['completed', 'discarded', 'cancelled']

async function tell(message: KillMessage): Promise<void> {
  await new Promise((resolve) => process.send?.(message, resolve))
}

async function work(order: KillOrder): Promise<void> {
  const { default: given } = (await import(order.appUrl)) as { readonly default: App }
  const { maxConnections: _, pooler: __, ...options } = given.internals.options
  await using app = defineApp({ ...options, database: order.database, leaseMs: order.leaseMs })
  const worker = workerOf(app, order)
  // Jobs that nobody runs on purpose, such as those of a paused queue, do not end: the parent has a deadline.
  for (;;) {
    if ((await worker.runNext(ATTEMPT_MS)) !== undefined) continue
    const jobs = await readEnqueued(app.internals.database)
    if (jobs.every(({ state }) => ENDED.includes(state))) return await tell({ kind: 'done' })
    await sleep(POLL_MS)
  }
}

function workerOf(app: App, { jobId, target }: KillOrder): TestWorker {
  const { composition, internals } = app
  const services = internals.services()
  let taken = 0
  app.events.on('attempt.started', (facts) => {
    if (facts.jobId === jobId) void tell({ kind: 'attempt' })
  })
  return new TestWorker({
    ...internals,
    name: `test on ${hostname()}`,
    app: composition.name,
    version,
    queues: [...composition.queues.keys()],
    jobs: composition.jobs,
    leaseMs: composition.leaseMs,
    services: (_, scope) => attemptServices(services, scope),
    reached: async (step, claimed) => {
      if (claimed.id !== jobId) return
      taken += 1
      await tell({ kind: 'step', step })
      if (taken !== target) return
      await tell({ kind: 'here' })
      await never
    },
  })
}

process.on('disconnect', () => process.kill(process.pid, 'SIGKILL'))
process.once('message', (order: KillOrder) => {
  work(order)
    .catch(async (error: unknown) => {
      const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
      await tell({ kind: 'failed', message })
    })
    .finally(() => process.disconnect())
})

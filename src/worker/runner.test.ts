import { expect, it } from 'vitest'
import { EventHub } from '../base/events.ts'
import { silentLogger } from '../base/logger.ts'
import { type AnyJob, defineJob } from '../jobs/define-job.ts'
import { Resources } from '../resources/resources.ts'
import type { ClaimedJob } from './claimed-job.ts'
import type { ContextServices } from './handler-context.ts'
import { LoopWatch } from './heartbeat.ts'
import { Lease } from './lease.ts'
import { Runner } from './runner.ts'

it('does not start a job that was cancelled on its way, goes on with the next, and starts it when it comes again', async () => {
  const ran: string[] = []
  const job = defineJob({
    name: 'job',
    input: { '~standard': { version: 1, vendor: 'test', validate: (value: unknown) => ({ value }) } },
    idempotent: true,
    handler: (ctx) => void ran.push(String(ctx.job.id)),
  })
  const runner = new Runner({
    queues: [{ name: 'q', concurrency: 1 }],
    jobs: new Map([['job', job as AnyJob]]),
    services: {
      logger: silentLogger,
      resources: new Resources({ replacements: new Map(), onError: () => {} }),
    } as unknown as ContextServices,
    events: new EventHub(),
    loopWatch: new LoopWatch(),
    onChange: () => {},
    onCommitted: () => {},
    onSuspectEnded: () => {},
  })
  const [slots] = runner.slots
  const claimed = (id: string) =>
    ({ id, name: 'job', queue: 'q', attempt: 1, maxAttempts: 2, lease: new Lease(5n, 1n, 1) }) as ClaimedJob
  const allEnded = () => new Promise((resolve) => setTimeout(resolve, 5))

  runner.cancel([['1', 'why']])
  for (const id of ['1', '2']) slots?.add(claimed(id))
  await allEnded()
  expect([ran, slots?.running, runner.outbox.size]).toEqual([['2'], 0, 2])

  slots?.add(claimed('1'))
  await allEnded()
  expect([ran, slots?.running]).toEqual([['2', '1'], 0])
})

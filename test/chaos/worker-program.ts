import { listenToTest } from '../support/program.ts'
import { chaosApp } from './chaos-app.ts'
import { openHistory } from './history-log.ts'

/** A worker of a chaos run. Tells its history all that handlers and the library's events say. */

const settings = JSON.parse(process.env['CHAOS'] ?? '{}') as {
  readonly url: string
  readonly leaseMs: number
  readonly history: string
  readonly marks: string
  readonly knowsRare: boolean
  readonly provider: string
  readonly name: string
}
const note = openHistory(settings.history)
note('life', { pid: process.pid, leaseMs: settings.leaseMs })
listenToTest()

const { app } = chaosApp({ ...settings, note })
const { events } = app
events.on('worker.started', ({ workerId }) => note('worker', { workerId }))
events.on('job.completed', ({ jobId, fencingToken }) => recorded(jobId, fencingToken, 'completed'))
events.on('job.discarded', ({ jobId, fencingToken }) => recorded(jobId, fencingToken, 'discarded'))
events.on('job.cancelled', ({ jobId, fencingToken }) => recorded(jobId, fencingToken, 'cancelled'))
events.on('job.snoozed', ({ jobId, fencingToken }) => recorded(jobId, fencingToken, 'snoozed'))
events.on('attempt.failed', ({ jobId, fencingToken }) => recorded(jobId, fencingToken, 'failed'))
events.on('job.parked', ({ jobId, fencingToken }) => recorded(jobId, fencingToken, 'parked'))
events.on('write.refused', ({ jobId, fencingToken, write }) =>
  note('refused', { job: jobId, token: fencingToken, write }),
)
events.on('effect.uncertain', ({ jobId, fencingToken, key, choice }) =>
  note('uncertain', { job: jobId, token: fencingToken, key, choice }),
)
events.on('lease.lost', (facts) => note('lost', { ...facts }))
events.on('jobs.rescued', (facts) => note('rescued', { ...facts }))
events.on('jobs.handedBack', (facts) => note('handed-back', { ...facts }))
events.on('wakeup.degraded', () => note('degraded'))
events.on('wakeup.restored', () => note('restored'))
events.on('worker.error', ({ during, error }) => note('error', { during, error: String(error) }))

const worker = app.worker()
process.once('SIGTERM', () => void app.close().then(() => note('stopped')))
await startPersistently()
note('ready', { workerId: worker.id })

function recorded(job: string, token: bigint, as: string): void {
  note('recorded', { job, token, as })
}

/** A host that cannot reach its database at the start tries again. */
async function startPersistently(): Promise<void> {
  for (;;) {
    try {
      return await worker.start()
    } catch (error) {
      note('error', { during: 'start', error: String(error) })
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
  }
}

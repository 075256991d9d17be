import { listenToTest, tell } from '../../support/program.ts'

/** Whether a promise is kept by the library that `entry` names: as it is, or with something taken out. */
const { entry, database, promise } = JSON.parse(process.argv[2] ?? '{}') as {
  readonly entry: string
  readonly database: string
  readonly promise: 'starts without notifications' | 'records what JSON cannot hold'
}
const { defineApp, defineJob } = (await import(entry)) as typeof import('../../../src/index.ts')

/** The longest look of a worker that hears nothing is a second after the one before. */
const DEADLINE_MS = 4000
const IDLE_MS = 1500

const cyclic: Record<string, unknown> = {}
cyclic['itself'] = cyclic
const job = defineJob({
  name: 'job',
  input: { '~standard': { version: 1, vendor: 'test', validate: (value) => ({ value }) } },
  idempotent: true,
  handler: () => (promise === 'records what JSON cannot hold' ? cyclic : undefined),
})
// Nothing is listened to.
const app = defineApp({ name: 'promises', database, jobs: [job], pooler: true })
listenToTest()
await app.worker().start()
await new Promise((resolve) => setTimeout(resolve, IDLE_MS))
const { id } = await app.enqueue(job, null)
const end = await app.job(id).wait({ timeoutMs: DEADLINE_MS })
tell('ended', { state: end?.state ?? null })
process.exit(0)

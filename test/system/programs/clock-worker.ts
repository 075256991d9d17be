import { defineApp, defineJob } from '../../../src/index.ts'
import { anything } from '../../integration/homes.ts'
import { listenToTest, tell } from '../../support/program.ts'

/** A worker of the queue `mail`, with whatever clock it was started under. */
listenToTest()
const [url = '', who = ''] = process.argv.slice(2)
const note = defineJob({
  name: 'test.note',
  input: anything<{ sleepMs?: number }>(),
  idempotent: true,
  queue: 'mail',
  handler: async (ctx, { sleepMs }) => {
    tell('started', { who, id: ctx.job.id, attempt: ctx.job.attempt })
    if (sleepMs !== undefined) await new Promise((resolve) => setTimeout(resolve, sleepMs))
  },
})
const app = defineApp({
  name: who,
  database: url,
  jobs: [note],
  queues: { mail: { concurrency: 4 } },
  leaseMs: 30_000,
})
await app.worker().start()
tell('ready', { now: Date.now() })

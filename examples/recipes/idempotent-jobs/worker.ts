import { setTimeout as sleep } from 'node:timers/promises'
import { defineApp, LockLostError } from 'holdfast'
import { tell } from '../stage/tell.ts'
import { processOnce } from './by-lock.ts'
import { processBlindly, processByScript } from './by-script.ts'
import { pickInvoice } from './invoices.ts'
import { blindProcessor, guardedProcessor, InvoiceRefusedError } from './process-invoice.ts'

/** A worker of the pool: takes invoices until none is left. It may be killed anywhere. */

const [, , name = 'worker'] = process.argv
const { VARIANT: variant, UNGUARDED: unguarded } = process.env
const app = defineApp({ name, database: process.env.DATABASE_URL, jobs: [], maxConnections: 3 })
const options = { app, worker: name, onWork: (jobId: string) => tell('works', { jobId }) }
const processInvoice = unguarded === 'true' ? blindProcessor(options) : guardedProcessor(options)
const processAlone = unguarded === 'true' ? processBlindly : processByScript

tell('ready')
for (;;) {
  const jobId = await app.transaction(pickInvoice)
  if (jobId === undefined) break
  try {
    if (variant === 'script') await processAlone(options, jobId)
    else await processOnce(app, jobId, processInvoice)
  } catch (error) {
    if (error instanceof LockLostError) tell('refused', { jobId })
    else if (!(error instanceof InvoiceRefusedError)) throw error
  }
  await sleep(1)
}
await app.close()
process.exit(0)

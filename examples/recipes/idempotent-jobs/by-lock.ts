import type { App } from 'holdfast'
import type { Processor } from './process-invoice.ts'

/** How long an invoice waits for a worker that died with it. Short, so that it can be watched; 30,000 is the default. */
const LEASE_MS = 1_000

/** The recipe: once per logical job, over a pool of workers. */
export async function processOnce(app: App, jobId: string, processInvoice: Processor): Promise<void> {
  await using lock = await app.locks.acquire(`jobs/${jobId}/lock`, {
    leaseMs: LEASE_MS,
    waitMs: 5_000,
    retryMs: 200,
  })
  if (!lock.held) return
  const done = await app.keys.get(`jobs/${jobId}/status`)
  if (done?.text() === 'completed') return
  await processInvoice(jobId, lock.fencingToken, lock.signal)
  // Compare-and-set: never over another worker's result.
  await app.keys.set(`jobs/${jobId}/status`, 'completed', { ifRevision: done?.revision ?? -1n, norev: true })
}

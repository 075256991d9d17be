import type { Transaction } from 'holdfast'
import { charge, mark } from './invoices.ts'
import { InvoiceRefusedError, type ProcessorOptions, work } from './process-invoice.ts'

/** The transition as one atomic script on the server. */
async function complete(
  app: ProcessorOptions['app'],
  jobId: string,
  tx?: Transaction,
): Promise<string | null> {
  const r = await app.script(
    `
  let status = get @status_key
  if status == "completed" then
    return "already-completed"
  end
  set @status_key "completed" norev
  return "completed"`,
    { status_key: `jobs/${jobId}/status` },
    { tx, lockWaitMs: 10_000 },
  )
  return r.text()
}

/**
 * The recipe without a lock. Two workers may do the work at the same time; only one of them makes the transition, and what comes
 * of it is written in the same transaction: all or nothing, wherever a worker dies.
 */
export async function processByScript(
  { app, worker, onWork }: ProcessorOptions,
  jobId: string,
): Promise<void> {
  await app.transaction((tx) => mark(tx, jobId, 'processing'))
  const cents = await work(app, jobId, onWork)
  if (cents <= 0) {
    await app.transaction((tx) => mark(tx, jobId, 'failed'))
    throw new InvoiceRefusedError(`${jobId} is of nothing`)
  }
  await app.transaction(async (tx) => {
    if ((await complete(app, jobId, tx)) === 'already-completed') return
    await charge(tx, { invoiceId: jobId, worker })
    await mark(tx, jobId, 'completed')
  })
}

/** What not to do: a worker that dies after the transition, and before the charge, has lost it. */
export async function processBlindly(
  { app, worker, onWork }: ProcessorOptions,
  jobId: string,
): Promise<void> {
  await app.transaction((tx) => mark(tx, jobId, 'processing'))
  const isFirst = (await complete(app, jobId)) === 'completed'
  const cents = await work(app, jobId, onWork)
  if (isFirst && cents > 0) await app.transaction((tx) => charge(tx, { invoiceId: jobId, worker }))
  await app.transaction((tx) => mark(tx, jobId, cents > 0 ? 'completed' : 'failed'))
}

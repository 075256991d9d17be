import { setTimeout as sleep } from 'node:timers/promises'
import type { App, Transaction } from 'holdfast'
import { charge, mark, readCents } from './invoices.ts'

/** An invoice that can never be charged: a person has to look at it. */
export class InvoiceRefusedError extends Error {
  override readonly name = 'InvoiceRefusedError'
}

export type Processor = (jobId: string, fencingToken: bigint, signal: AbortSignal) => Promise<void>

export interface ProcessorOptions {
  readonly app: App
  readonly worker: string
  /** Called when the work begins: here a worker may be killed or stopped. */
  readonly onWork: (jobId: string) => void
}

/**
 * What the lock is to protect. Each of its writes is made in a transaction that asks whether the lock is still this worker's, and
 * the last one looks at what is there: a worker may have died after its charge, and before it could say so in the key.
 */
export function guardedProcessor({ app, worker, onWork }: ProcessorOptions): Processor {
  return async (jobId, token, signal) => {
    const guarded = async (write: (tx: Transaction) => Promise<void>) =>
      await app.transaction(async (tx) => {
        await app.locks.assert(tx, `jobs/${jobId}/lock`, token)
        await write(tx)
      })
    await guarded(async (tx) => void (await mark(tx, jobId, 'processing')))
    signal.throwIfAborted()
    const cents = await work(app, jobId, onWork)
    await guarded(async (tx) => {
      const isMine = await mark(tx, jobId, cents > 0 ? 'completed' : 'failed')
      if (isMine && cents > 0) await charge(tx, { invoiceId: jobId, worker, token })
    })
    if (cents <= 0) throw new InvoiceRefusedError(`${jobId} is of nothing`)
  }
}

/** What not to do: a lock protects nothing that does not look at its token. */
export function blindProcessor({ app, worker, onWork }: ProcessorOptions): Processor {
  return async (jobId, token) => {
    await app.transaction((tx) => mark(tx, jobId, 'processing'))
    const cents = await work(app, jobId, onWork)
    if (cents > 0) await app.transaction((tx) => charge(tx, { invoiceId: jobId, worker, token }))
    await app.transaction((tx) => mark(tx, jobId, cents > 0 ? 'completed' : 'failed'))
  }
}

/** Long enough to be killed in. It cannot be interrupted: it looks at no signal. */
export async function work(app: App, jobId: string, onWork: (jobId: string) => void): Promise<number> {
  onWork(jobId)
  const cents = await app.transaction((tx) => readCents(tx, jobId))
  await sleep(50 + Math.random() * 50)
  return cents
}

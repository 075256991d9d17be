import { setTimeout as sleep } from 'node:timers/promises'
import app, { confirmOrder, database, sendCompanyConfirmation, sendConfirmation } from './app.ts'
import { inTransaction } from './database.ts'
import type { Order } from './orders.ts'
import type { Random } from './random.ts'
import type { Message } from './record.ts'
import { markConfirmed } from './shop.ts'

/** Thrown after the enqueue, so that the order and its job roll back together. */
class ChangedMind extends Error {
  override readonly name = 'ChangedMind'
}

/** How many orders are taken in a second. */
export interface Pace {
  ordersPerSecond: number
}

export interface ConfirmOptions {
  readonly random: Random
  /** How fast customers come; may change meanwhile. */
  readonly pace: Pace
  /** Share of transactions that are rolled back on purpose, 0 to 1. */
  readonly rollbackShare: number
  /** Called once the outcome of an order's transaction is certain. */
  readonly tell: (message: Message) => void
  /** Aborts to take no further orders. Default: all are taken. */
  readonly signal?: AbortSignal
}

const CONCURRENCY = 4
/** What customers are behind their pace is made up for, up to so much. */
const LATE_MS = 1_000

/**
 * Confirms each order together with its job: one commit, or one rollback, for both.
 *
 * Draws one of three ways for each: a producer in Holdfast's transaction, a transaction of the shop's own,
 * and one of the shop's own in which a failure rolls back to a savepoint only.
 */
export async function confirmOrders(orders: readonly Order[], options: ConfirmOptions): Promise<void> {
  const { pace, random, tell, signal } = options
  let dueAt = performance.now()
  let taken = 0

  const runLane = async () => {
    for (let order = orders[taken++]; order; order = orders[taken++]) {
      if (signal?.aborted) return
      // Drawn when the order is taken, before anything is awaited: so a seed repeats the whole run.
      const changesMind = random.chance(options.rollbackShare)
      const confirm = random.pick([throughProducer, throughOwnTransaction, throughSavepoint])
      dueAt = Math.max(dueAt, performance.now() - LATE_MS) + 1_000 / pace.ordersPerSecond

      await sleep(Math.max(0, dueAt - performance.now()))
      const jobId = await confirm(order, changesMind)
      tell({ type: changesMind ? 'rolled back' : 'confirmed', orderId: order.id, jobId })
    }
  }
  await Promise.all(Array.from({ length: CONCURRENCY }, runLane))
}

/** The job that tells the customer. */
function jobFor({ company }: Order) {
  return company === '' ? sendConfirmation : sendCompanyConfirmation
}

async function throughProducer({ id: orderId, company }: Order, changesMind: boolean): Promise<string> {
  let jobId = ''
  const confirmed = app.transaction(async (tx) => {
    const job = await app.produce(confirmOrder, { orderId, isCompany: company !== '' }, { tx })
    jobId = job.id
    if (changesMind) throw new ChangedMind()
  })
  await confirmed.catch(expectChangedMind)
  return jobId
}

async function throughOwnTransaction(order: Order, changesMind: boolean): Promise<string> {
  const { id: orderId } = order
  let jobId = ''
  const confirmed = inTransaction(database, async (tx) => {
    await markConfirmed(tx, orderId)
    const job = await app.enqueue(jobFor(order), { orderId }, { tx, uniqueKey: `confirmation:${orderId}` })
    jobId = String(job.id)
    if (changesMind) throw new ChangedMind()
  })
  await confirmed.catch(expectChangedMind)
  return jobId
}

async function throughSavepoint(order: Order, changesMind: boolean): Promise<string> {
  const { id: orderId } = order
  return await inTransaction(database, async (tx) => {
    await tx.query('savepoint before_order')
    await markConfirmed(tx, orderId)
    const job = await app.enqueue(jobFor(order), { orderId }, { tx, uniqueKey: `confirmation:${orderId}` })
    if (changesMind) await tx.query('rollback to savepoint before_order')
    return String(job.id)
  })
}

function expectChangedMind(error: unknown): void {
  if (!(error instanceof ChangedMind)) throw error
}

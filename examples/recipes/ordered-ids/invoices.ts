import type { App, ReservedRange, Transaction } from 'holdfast'

export const SEQUENCE = 'recipe/invoices'

export async function createInvoices(app: App): Promise<void> {
  await app.sequences.create(SEQUENCE, { initial: 20_000, ifExists: 'keep' })
  await app.transaction(async (tx) => {
    await tx.query(
      'create table if not exists numbered_invoice (number bigint primary key, order_id text not null)',
    )
  })
}

/** The number is drawn in the transaction that uses it, as late as can be: one that rolls back leaves no gap. */
export async function writeInvoice(
  app: App,
  orderId: string,
  rest?: (tx: Transaction) => void,
): Promise<bigint> {
  return await app.transaction(async (tx) => {
    const number = await app.sequences.next(SEQUENCE, { tx })
    await tx.query('insert into numbered_invoice (number, order_id) values ($1, $2)', [
      String(number),
      orderId,
    ])
    rest?.(tx)
    return number
  })
}

/** However often this is repeated, within ten minutes: one number for the order. */
export async function numberOf(app: App, orderId: string): Promise<bigint> {
  return await app.sequences.next(SEQUENCE, { idempotencyKey: `order-${orderId}` })
}

/** Labels for a whole pallet at once. What is left of them is thrown away: they are never given again. */
export async function reserveLabels(app: App, count: number): Promise<ReservedRange> {
  return await app.sequences.reserve(SEQUENCE, count)
}

import type { Transaction } from 'holdfast'

/**
 * The invoices of a shop, and what was charged for them. Nothing about `charge` keeps an invoice from being charged twice: that
 * is left to the recipe, and seen here.
 */
export async function createInvoices(
  tx: Transaction,
  { count, bad }: { count: number; bad: number },
): Promise<void> {
  await tx.query('drop table if exists charge, invoice')
  await tx.query(`create table invoice (
    id text primary key,
    status text not null default 'pending' check (status in ('pending', 'processing', 'completed', 'failed')),
    cents int not null)`)
  await tx.query(
    'create table charge (id bigserial primary key, invoice_id text not null, worker text not null, token bigint)',
  )
  // One of nothing can never be charged.
  await tx.query(
    `insert into invoice (id, cents) select 'inv-' || n, case when n <= $2 then 0 else 100 * n end from generate_series(1, $1::int) n`,
    [count, bad],
  )
}

/** The first ones are bad. */
export function isBad(invoiceId: string, bad: number): boolean {
  return Number(invoiceId.replace('inv-', '')) <= bad
}

export async function isOver(tx: Transaction, invoiceId: string): Promise<boolean> {
  const { rowCount } = await tx.query(
    `select from invoice where id = $1 and status in ('completed', 'failed')`,
    [invoiceId],
  )
  return rowCount === 1
}

/** An invoice that is not over: one that nobody has looked at, or whose worker may have died. */
export async function pickInvoice(tx: Transaction): Promise<string | undefined> {
  const { rows } = await tx.query<{ id: string }>(
    `select id from invoice where status in ('pending', 'processing') order by random() limit 1`,
  )
  return rows[0]?.id
}

export async function readCents(tx: Transaction, invoiceId: string): Promise<number> {
  const { rows } = await tx.query<{ cents: number }>('select cents from invoice where id = $1', [invoiceId])
  return rows[0]?.cents ?? 0
}

export type Status = 'pending' | 'processing' | 'completed' | 'failed'

/** Takes an invoice a step on, unless it is over. */
export async function mark(tx: Transaction, invoiceId: string, status: Status): Promise<boolean> {
  const { rowCount } = await tx.query(
    `update invoice set status = $2 where id = $1 and status in ('pending', 'processing')`,
    [invoiceId, status],
  )
  return rowCount === 1
}

export interface Charge {
  readonly invoiceId: string
  readonly worker: string
  /** Under which the lock was granted, if there was one. */
  readonly token?: bigint
}

export async function charge(tx: Transaction, { invoiceId, worker, token }: Charge): Promise<void> {
  await tx.query('insert into charge (invoice_id, worker, token) values ($1, $2, $3)', [
    invoiceId,
    worker,
    token === undefined ? null : String(token),
  ])
}

export interface Facts {
  readonly statuses: Readonly<Record<Status, number>>
  readonly chargedTwice: number
  readonly completedUncharged: number
  readonly failedCharged: number
}

export async function readFacts(tx: Transaction): Promise<Facts> {
  const { rows } = await tx.query<Record<string, number>>(
    `select count(*) filter (where status = 'pending')::int as pending,
       count(*) filter (where status = 'processing')::int as processing,
       count(*) filter (where status = 'completed')::int as completed,
       count(*) filter (where status = 'failed')::int as failed,
       count(*) filter (where charges > 1)::int as twice,
       count(*) filter (where status = 'completed' and charges = 0)::int as uncharged,
       count(*) filter (where status = 'failed' and charges > 0)::int as wrong
     from (select status, (select count(*) from charge where invoice_id = invoice.id) as charges from invoice) counted`,
  )
  const {
    pending = 0,
    processing = 0,
    completed = 0,
    failed = 0,
    twice = 0,
    uncharged = 0,
    wrong = 0,
  } = rows[0] ?? {}
  return {
    statuses: { pending, processing, completed, failed },
    chargedTwice: twice,
    completedUncharged: uncharged,
    failedCharged: wrong,
  }
}

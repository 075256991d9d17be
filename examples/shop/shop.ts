import type { Sql } from './database.ts'
import { type Order, orderFields, orderSchema } from './orders.ts'

/** The shop's own tables: Holdfast knows nothing of them. */
export async function createShop(database: Sql): Promise<void> {
  await database.query('create schema if not exists shop')
  await database.query(`
    create table if not exists shop.orders (
      id text primary key,
      email text not null,
      name text not null,
      company text not null,
      street text not null,
      city text not null,
      country text not null,
      article text not null,
      quantity int not null,
      note text not null,
      status text not null default 'placed'
    )`)
}

/** Stores orders as placed, in one statement. */
export async function placeOrders(database: Sql, orders: readonly Order[]): Promise<void> {
  await database.query(
    `insert into shop.orders (${orderFields.join(', ')})
     select ${orderFields.join(', ')} from jsonb_populate_recordset(null::shop.orders, $1::text::jsonb)`,
    [JSON.stringify(orders)],
  )
}

export async function markConfirmed(tx: Sql, orderId: string): Promise<void> {
  await tx.query('update shop.orders set status = $1 where id = $2', ['confirmed', orderId])
}

export async function readOrder(database: Sql, orderId: string): Promise<Order | undefined> {
  const { rows } = await database.query(`select ${orderFields.join(', ')} from shop.orders where id = $1`, [
    orderId,
  ])
  return rows[0] === undefined ? undefined : orderSchema.parse(rows[0])
}

export async function readConfirmedIds(database: Sql): Promise<Set<string>> {
  const { rows } = await database.query(`select id from shop.orders where status = 'confirmed'`)
  return new Set(rows.map((row) => String((row as { id: unknown }).id)))
}

export async function readVersion(database: Sql): Promise<string> {
  const { rows } = await database.query(
    `select split_part(current_setting('server_version'), ' ', 1) as version`,
  )
  return String((rows[0] as { version: unknown }).version)
}

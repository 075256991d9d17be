import type { Transaction } from 'holdfast'

/** The least that is needed of a transaction. */
export type Sql = Pick<Transaction, 'query'>

/** A row of the table that is exported. */
export interface Entry {
  readonly id: string
  readonly article: string
  readonly cents: number
}

export async function createEntries(tx: Sql): Promise<void> {
  await tx.query(`create table if not exists entry (
    tenant text not null, id bigint not null, article text not null, cents int not null, primary key (tenant, id))`)
}

/** Fills a tenant's table with `count` rows, if it is empty. */
export async function fillEntries(tx: Sql, tenant: string, count: number): Promise<void> {
  await tx.query(
    `insert into entry (tenant, id, article, cents)
     select $1, n, 'Teapot, "No. ' || n || '"', n % 10000 from generate_series(1, $2::int) n on conflict do nothing`,
    [tenant, count],
  )
}

/** What an export is of: rows that come later belong to the next one. */
export async function readExtent(
  tx: Sql,
  tenant: string,
): Promise<{ readonly lastId: string; readonly total: number }> {
  const { rows } = await tx.query<{ lastId: string; total: number }>(
    `select coalesce(max(id), 0)::text as "lastId", count(*)::int as total from entry where tenant = $1`,
    [tenant],
  )
  return rows[0] ?? { lastId: '0', total: 0 }
}

export interface Page {
  readonly afterId: string
  readonly lastId: string
  readonly limit: number
}

/** The next rows by id. By key, not by offset: it costs the same at the end as at the start. */
export async function readEntries(tx: Sql, tenant: string, page: Page): Promise<readonly Entry[]> {
  const { rows } = await tx.query<Entry>(
    `select id::text, article, cents from entry
     where tenant = $1 and id > $2::bigint and id <= $3::bigint order by entry.id limit $4`,
    [tenant, page.afterId, page.lastId, page.limit],
  )
  return rows
}

export function toCsv(entries: readonly Entry[]): string {
  return entries
    .map(({ id, article, cents }) => `${id},"${article.replaceAll('"', '""')}",${cents}\n`)
    .join('')
}

import { quoteIdentifier } from '../../driver/identifier.ts'

/**
 * The tables of the user, with the columns that two runs can be compared by. Left out are those that differ by themselves: points
 * in time, identities, and defaults that are drawn anew (sequences and UUIDs).
 */
export const listUserTables = `
  select c.table_schema as schema, c.table_name as name, array_agg(c.column_name::text order by c.ordinal_position) as columns
  from information_schema.columns c join information_schema.tables t using (table_schema, table_name)
  where t.table_type = 'BASE TABLE' and c.table_schema <> $1 and c.table_schema !~ '^pg_' and c.table_schema <> 'information_schema'
    and c.is_identity = 'NO' and c.data_type !~ '^(timestamp|date|time)'
    and coalesce(c.column_default, '') !~ '(nextval|gen_random_uuid|uuidv7|uuid_generate)'
  group by 1, 2 order by 1, 2`

export interface UserTable {
  readonly schema: string
  readonly name: string
  readonly columns: readonly string[]
}

/** The rows of a table as JSON text, in the order of that text. */
export function readUserTable({ schema, name, columns }: UserTable): string {
  const list = columns.map(quoteIdentifier).join(', ')
  return `select row_to_json(r)::text as row from (select ${list} from ${quoteIdentifier(schema)}.${quoteIdentifier(name)}) r order by 1`
}

/**
 * How many rows of each table this session has written that are not in the statistics yet: those of the transaction under way among them.
 * To be read at its beginning too, since on a single connection some of earlier ones are still counted. Tables of the system and of ours
 * are left out.
 */
export const countWrites = `
  select schemaname as schema, relname as name, n_tup_ins + n_tup_upd + n_tup_del as rows
  from pg_catalog.pg_stat_xact_user_tables
  where n_tup_ins + n_tup_upd + n_tup_del > 0 and schemaname <> $1 and schemaname !~ '^pg_'`

export interface WriteCount {
  readonly schema: string
  readonly name: string
  readonly rows: number
}

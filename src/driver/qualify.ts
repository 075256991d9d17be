/**
 * Functions of PostgreSQL's own that statements of ours call. `coalesce`, `least`, `greatest` and `extract` are
 * grammar, and so is `unnest` of several arrays; of one array it is written out as `pg_catalog.unnest`.
 */
const FUNCTIONS = `
  array_agg array_append array_position cardinality ceil clock_timestamp count current_setting date_part encode floor format
  hashtextextended json_agg json_array_elements json_build_array json_build_object json_object_agg
  json_to_recordset jsonb_build_object max min nextval pg_current_snapshot pg_current_xact_id pg_logical_emit_message pg_notify row_number set_config statement_timestamp sum
  to_hex to_timestamp`
  .trim()
  .split(/\s+/)

const CALLS = new RegExp(`(?<![\\w."])(?=(?:${FUNCTIONS.join('|')})\\()`, 'g')

/** Writes `pg_catalog.` before each call of them: a search path may put functions of the same names in front. */
export function qualifyFunctions(text: string): string {
  return text.replace(CALLS, 'pg_catalog.')
}

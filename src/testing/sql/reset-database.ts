/**
 * Puts an embedded database back to where a migration left it: rows of ours go, sequences start anew, and whatever else
 * was made is dropped. Rows are deleted, not truncated: in tables this small that takes a quarter of the time. Of the tables of
 * ours only what describes the schema itself is left.
 *
 * Fails if the range of ids was moved on, which pruning does after days: such an instance is not used again.
 */
export function resetDatabase(schema: string): string {
  const ours = `'${schema.replaceAll("'", "''")}'`
  return `do $reset$
    declare
      found record;
      moved boolean;
    begin
      execute format('select min(first_id) > 0 or bool_or(is_archive) from %I.id_range', ${ours}) into moved;
      if moved then raise exception 'the ranges of ids have moved on'; end if;
      execute format('update %I.id_range set used_since = null where used_since is not null', ${ours});
      execute format('update %I.key_log set trimmed_to = 0, trim_place = -1 where trimmed_to > 0 or trim_place > -1', ${ours});
      for found in
        select relname from pg_catalog.pg_class
        where relnamespace = to_regnamespace(quote_ident(${ours})) and relkind in ('r', 'p') and not relispartition
          and relname not in ('migration', 'id_range', 'key_log')
      loop
        execute format('delete from %I.%I', ${ours}, found.relname);
      end loop;
      for found in
        select relname from pg_catalog.pg_class where relnamespace = to_regnamespace(quote_ident(${ours})) and relkind = 'S'
      loop
        execute format('alter sequence %I.%I restart', ${ours}, found.relname);
      end loop;
      for found in
        select nspname from pg_catalog.pg_namespace
        where nspname !~ '^pg_' and nspname not in ('information_schema', ${ours})
      loop
        execute format('drop schema %I cascade', found.nspname);
      end loop;
      create schema public;
    end
    $reset$`
}

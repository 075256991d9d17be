-- compatible: adds tables, sequences and functions; older workers go on and use none of them.

-- Keys are persistent or ephemeral: two name spaces, each with a table of the newest state and a log of changes. The
-- ephemeral tables are unlogged: a crash of the server empties them, a restart does not.

create type :schema.key_change_kind as enum ('set', 'deleted', 'extended', 'expired');

-- The newest state of each key that was ever written. A deleted one stays, so that its revisions go on. The row's lock
-- is what orders the changes of a key. Without indexes on what changes, an update stays on its page.
create table :schema.key_value (
  revision bigint not null,                 -- -1: never written; a script holds the row
  xid xid8 not null,                        -- the transaction that wrote it last
  modified_at timestamptz not null,         -- never falls
  expires_at timestamptz,                   -- from then on the key is absent, swept or not
  deleted boolean not null,
  norev boolean not null,                   -- the value is not in the history
  tenant text collate "C" not null,
  key text collate "C" not null,
  value bytea not null,
  constraint key_value_pkey primary key (tenant, key)
) with (fillfactor = 80, vacuum_truncate = false);
create index key_value_expires_idx on :schema.key_value (expires_at) where not deleted and expires_at is not null;

create sequence :schema.key_place_seq as bigint;

-- Every change, in the order of places. A place is drawn under the lock of the key's row: the places of one key are in
-- the order of its changes. Both the history and what watchers read.
create table :schema.key_change (
  place bigint not null default nextval(':schema.key_place_seq'),
  revision bigint not null,
  xid xid8 not null,
  changed_at timestamptz not null,
  modified_at timestamptz not null,         -- when the value was set
  expires_at timestamptz,
  kind :schema.key_change_kind not null,
  norev boolean not null,                   -- for watchers only: no part of the history
  tenant text collate "C" not null,
  key text collate "C" not null,
  value bytea,                              -- null where the key is absent from then on
  constraint key_change_pkey primary key (place)
) with (vacuum_truncate = false);
create index key_change_history_idx on :schema.key_change (tenant, key, revision, place) where not norev;

-- One row: which ephemeral keys these are (raised when a crash has emptied the tables), and up to which place changes
-- may be missing from the log.
create table :schema.key_log (
  only_row boolean not null default true,
  epoch bigint not null,
  trimmed_to bigint not null,
  trim_place bigint not null default -1,    -- how far the log was looked through for what is not needed any more
  constraint key_log_pkey primary key (only_row),
  constraint key_log_is_one_row check (only_row)
);
insert into :schema.key_log (epoch, trimmed_to) values (0, 0);

create unlogged table :schema.ephemeral_key_value (like :schema.key_value including all) with (fillfactor = 80, vacuum_truncate = false);
create unlogged table :schema.ephemeral_key_change (like :schema.key_change including all) with (vacuum_truncate = false);
create unlogged table :schema.ephemeral_key_log (like :schema.key_log including all);
-- Rows that come and go at once leave pages that are never given back: a plan that a session makes while there are few keys,
-- and keeps, goes by the indexes all the same. Reading a table of one page would be cheaper, until it has grown.
insert into :schema.key_value select 0, '3', 'epoch', null, true, true, '', '__holdfast:' || i, '' from generate_series(1, 2500) i;
insert into :schema.ephemeral_key_value table :schema.key_value;
insert into :schema.key_change select -i, 0, '3', 'epoch', 'epoch', null, 'expired', true, '', '__holdfast:' || i from generate_series(1, 2500) i;
insert into :schema.ephemeral_key_change table :schema.key_change;
delete from :schema.key_value;
delete from :schema.ephemeral_key_value;
delete from :schema.key_change;
delete from :schema.ephemeral_key_change;

-- Logged, so that neither a place nor a first revision comes again after a crash.
create sequence :schema.ephemeral_key_place_seq as bigint;
alter table :schema.ephemeral_key_change alter place set default nextval(':schema.ephemeral_key_place_seq');
create sequence :schema.ephemeral_epoch_seq as bigint;

-- Who watches, so that a change announces itself only then. `prefix` is what the key has to start with.
create table :schema.key_watcher (
  id uuid not null,
  expires_at timestamptz not null,
  ephemeral boolean not null,
  tenant text collate "C" not null,
  prefix text collate "C" not null,
  constraint key_watcher_pkey primary key (id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 100);

-- The second until which somebody watches, as the sequence's value: to ask it costs a writer a tenth of asking the table.
create sequence :schema.key_watch_seq as bigint;

-- Snapshots of the server that are kept for reads as of them: what such a read needs is not trimmed.
create table :schema.key_hold (
  id bigint generated always as identity,
  held_at timestamptz not null,
  expires_at timestamptz not null,
  ephemeral boolean not null,
  is_exact boolean not null,                -- by the snapshot; otherwise by the time
  tenant text collate "C" not null,
  holder text collate "C" not null,
  held pg_snapshot not null,
  constraint key_hold_pkey primary key (id)
);
create index key_hold_holder_idx on :schema.key_hold (tenant, holder);

-- Makes a function whose parameter `ephemeral` says which tables it is about: what stands between `$each$` and `$end$`
-- is there twice, `$twin$` in front of a table's name being `ephemeral_` or nothing. Plans name their table, and none is
-- made for the other. Dropped at the end.
create function :schema.create_key_function(definition text) returns void
language plpgsql as $function$
declare
  body text := split_part(split_part(definition, '$each$', 2), '$end$', 1);
begin
  execute split_part(definition, '$each$', 1)
    || 'if ephemeral then' || replace(body, '$twin$', 'ephemeral_') || 'else' || replace(body, '$twin$', '') || 'end if;'
    || split_part(definition, '$end$', 2);
end
$function$;

-- The number that writers of the log lock. This function and the next two have no settings, so that PostgreSQL writes their
-- bodies into what calls them: all names and operators are qualified.
create function :schema.key_log_number(ephemeral boolean) returns integer
language sql immutable as $function$
  select pg_catalog.hashtext(case when ephemeral
    then 'holdfast ephemeral_keys '::pg_catalog.text operator(pg_catalog.||) :schema_literal::pg_catalog.text
    else 'holdfast keys '::pg_catalog.text operator(pg_catalog.||) :schema_literal::pg_catalog.text end)
$function$;

-- Says that this transaction is about to draw a place, by a shared advisory lock whose second number is the minute: who reads
-- the log can tell a gap that may be filled from one that stays, and how old what fills it can be. Always true.
create function :schema.enter_key_log(ephemeral boolean) returns boolean
language sql volatile as $function$
  select pg_catalog.pg_advisory_xact_lock_shared(:schema.key_log_number(ephemeral), pg_catalog.floor(
    pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog./) 60)::pg_catalog.int4) is not null
$function$;

-- Whether somebody may watch a key: null or false if not.
create function :schema.key_is_watched() returns boolean
language sql volatile as $function$
  select pg_catalog.pg_sequence_last_value(':schema.key_watch_seq'::pg_catalog.regclass)
    operator(pg_catalog.>) pg_catalog.date_part('epoch', pg_catalog.clock_timestamp())
$function$;

-- Wakes those who watch the key. Always true.
create function :schema.tell_key_changed(tenant text, ephemeral boolean, key text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
#variable_conflict use_column
begin
  perform pg_notify(:hint_channel, 'keys') where exists (select from :schema.key_watcher w
    where w.expires_at > clock_timestamp() and w.ephemeral = tell_key_changed.ephemeral and w.tenant = tell_key_changed.tenant
      and starts_with(tell_key_changed.key, w.prefix));
  return true;
end
$function$;

-- The number by which a bucket is locked: null is the one of all keys. Numbers may meet; then one waits for nothing.
create function :schema.key_bucket_lock(tenant text, ephemeral boolean, bucket text) returns bigint
language sql immutable set search_path = pg_catalog, pg_temp as $function$
  select hashtextextended(concat_ws(' ', 'holdfast', :schema_literal, ephemeral, length(tenant), tenant, '/' || bucket), 0)
$function$;

-- Waits while a transaction relies on no key being created in one of the buckets above `key`; then holds them to it.
create function :schema.enter_key_buckets(tenant text, ephemeral boolean, key text) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
  part text;
  bucket text;
begin
  perform pg_advisory_xact_lock_shared(:schema.key_bucket_lock(tenant, ephemeral, null));
  foreach part in array trim_array(string_to_array(key, '/'), 1) loop
    bucket := concat_ws('/', bucket, part);
    perform pg_advisory_xact_lock_shared(:schema.key_bucket_lock(tenant, ephemeral, bucket));
  end loop;
end
$function$;

-- What keys that start with `prefix` are below, in byte order: a bound for an index.
create function :schema.key_prefix_end(prefix text) returns text
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
declare
  last integer;
begin
  for count in reverse length(prefix)..1 loop
    last := ascii(substr(prefix, count, 1));
    -- 55296 to 57343 are surrogates, which are no characters.
    if last < 1114111 then return left(prefix, count - 1) || chr(case last when 55295 then 57344 else last + 1 end); end if;
  end loop;
  -- Above every key, which has 1,024 bytes at most.
  return repeat(chr(1114111), 257);
end
$function$;

-- The first revision of a new ephemeral key. The first caller after a crash begins an epoch, whose number is the upper
-- part of revisions and places from then on, and commits synchronously: neither may come again.
create function :schema.ephemeral_epoch(out epoch bigint) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
begin
  select l.epoch into epoch from :schema.ephemeral_key_log l;
  if found then return; end if;
  lock table :schema.ephemeral_key_log in share row exclusive mode;
  select l.epoch into epoch from :schema.ephemeral_key_log l;
  if found then return; end if;
  perform set_config('synchronous_commit', 'on', true)
    where current_setting('synchronous_commit') in ('off', 'local');
  epoch := nextval(':schema.ephemeral_epoch_seq') - 1;
  if epoch > 0 then perform setval(':schema.ephemeral_key_place_seq', epoch << 40); end if;
  insert into :schema.ephemeral_key_log (epoch, trimmed_to) values (epoch, epoch << 40);
end
$function$;

-- Refuses what no key, and no time to live, may be.
create function :schema.check_key(key text, ttl_ms bigint) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
  if key is null or key = '' or octet_length(key) > 1024 then
    raise exception using errcode = 'HF001', message = 'key: must have 1 to 1024 bytes';
  end if;
  if starts_with(key, '__holdfast:') then
    raise exception using errcode = 'HF001', message = 'key: must not start with "__holdfast:", which is reserved';
  end if;
  if ttl_ms < 0 then raise exception using errcode = 'HF001', message = 'ttl_ms: must not be negative'; end if;
end
$function$;

-- Sets a key, if all conditions that are given hold. `ttl_ms`: from now, null or 0 for no expiry. An absent key counts as
-- an empty value, and has the revision it had last; -1 is one that was never written. With `norev` the value leaves no
-- trace in the history once another comes. Refused, it changes nothing and tells the revision, and the value if the key
-- is live. Waits for transactions that have written the key, as all of these functions do that write.
select :schema.create_key_function($function$
create function :schema.key_set(tenant text, ephemeral boolean, key text, value bytea, ttl_ms bigint, if_absent boolean,
  if_present boolean, if_value bytea, if_revision bigint, norev boolean,
  out done boolean, out revision bigint, out value_now bytea, out expires_at timestamptz, out modified_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $body$
#variable_conflict use_column
declare
  -- The row as it was. Plain variables, and few expressions: each costs 1 us or so, in each transaction anew.
  r bigint;
  x xid8;
  m timestamptz;
  e timestamptz;
  d boolean;
  n boolean;
  v bytea;
  at timestamptz;
begin
  if octet_length(key) between 1 and 1024 and not starts_with(key, '__holdfast:') and (ttl_ms < 0) is not true and value is not null then
  else
    perform :schema.check_key(key, coalesce(ttl_ms, 0));
    value := coalesce(value, '');
  end if;
  $each$
  loop
    select k.revision, k.xid, k.modified_at, k.expires_at, k.deleted, k.norev, k.value into r, x, m, e, d, n, v
    from :schema.$twin$key_value k where k.tenant = key_set.tenant and k.key = key_set.key;
    -- Where time decides, it is read under the row's lock. Otherwise what was seen is checked by the update, and a refusal
    -- locks and writes nothing.
    if e is not null or ttl_ms > 0 then
      select k.revision, k.xid, k.modified_at, k.expires_at, k.deleted, k.norev, k.value into r, x, m, e, d, n, v
      from :schema.$twin$key_value k where k.tenant = key_set.tenant and k.key = key_set.key for no key update;
    end if;
    if r is null then
      if if_present or if_value <> '' or if_revision <> -1 then
        done := false;
        revision := -1;
        return;
      end if;
      perform :schema.enter_key_buckets(tenant, ephemeral, key);
      insert into :schema.$twin$key_value (revision, xid, modified_at, deleted, norev, tenant, key, value)
      values (-1, pg_current_xact_id(), '-infinity', true, true, key_set.tenant, key_set.key, '') on conflict do nothing;
      continue;
    end if;
    -- Also says that places are about to be drawn.
    at := case when :schema.enter_key_log(ephemeral) then clock_timestamp() end;
    if if_revision <> r or if_absent and not d and (e > at) is not false or if_present and (d or e <= at)
      or if_value <> (case when d or e <= at then '' else v end) then
      done := false;
      revision := r;
      if not d and (e > at) is not false then
        value_now := v;
        expires_at := e;
        modified_at := m;
      end if;
      return;
    end if;
    revision := case when r >= 0 then r + 1 when ephemeral then :schema.ephemeral_epoch() << 40 else 0 end;
    modified_at := greatest(at, m);
    if ttl_ms > 0 then expires_at := at + ttl_ms * interval '1 millisecond'; end if;
    update :schema.$twin$key_value k set xid = pg_current_xact_id(), modified_at = key_set.modified_at, revision = key_set.revision,
      expires_at = key_set.expires_at, deleted = false, norev = key_set.norev is true, value = key_set.value
    where k.tenant = key_set.tenant and k.key = key_set.key and k.revision = r and k.xid = x;
    exit when found;
  end loop;
  -- Of several values that a transaction gives a key, only the last is part of the history.
  if x = pg_current_xact_id() and not n then
    update :schema.$twin$key_change c set norev = true
    where c.tenant = key_set.tenant and c.key = key_set.key and c.revision = r and c.xid = x and not c.norev;
  end if;
  insert into :schema.$twin$key_change (revision, xid, changed_at, modified_at, expires_at, kind, norev, tenant, key, value)
  values (key_set.revision, pg_current_xact_id(), key_set.modified_at, key_set.modified_at,
    key_set.expires_at, 'set', key_set.norev is true, key_set.tenant, key_set.key, key_set.value);
  $end$
  if :schema.key_is_watched() then
    perform :schema.tell_key_changed(tenant, ephemeral, key);
  end if;
  done := true;
  value_now := value;
end
$body$
$function$);

-- Deletes a live key: that is a revision of its own. A key that is missing, deleted or expired is left as it is, and its
-- revision told (-1: never written).
select :schema.create_key_function($function$
create function :schema.key_delete(tenant text, ephemeral boolean, key text, if_value bytea, if_revision bigint,
  out done boolean, out revision bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $body$
#variable_conflict use_column
declare
  kv record;
  at timestamptz;
begin
  if (octet_length(key) between 1 and 1024 and not starts_with(key, '__holdfast:')) is not true then perform :schema.check_key(key, 0); end if;
  $each$
  select k.revision, k.xid, k.modified_at, k.expires_at, k.deleted, k.norev, k.value into kv
  from :schema.$twin$key_value k where k.tenant = key_delete.tenant and k.key = key_delete.key for no key update;
  -- Also says that places are about to be drawn.
  at := case when :schema.enter_key_log(ephemeral) then clock_timestamp() end;
  if kv.revision is null or kv.deleted or kv.expires_at <= at or if_revision <> kv.revision or if_value <> kv.value then
    done := false;
    revision := coalesce(kv.revision, -1);
    return;
  end if;
  -- Of several values that a transaction gives a key, only the last is part of the history.
  if kv.xid = pg_current_xact_id() and not kv.norev then
    update :schema.$twin$key_change c set norev = true
    where c.tenant = key_delete.tenant and c.key = key_delete.key and c.revision = kv.revision and c.xid = kv.xid and not c.norev;
  end if;
  update :schema.$twin$key_value k set xid = pg_current_xact_id(), modified_at = greatest(at, k.modified_at), revision = k.revision + 1,
    expires_at = null, deleted = true, norev = false, value = ''
  where k.tenant = key_delete.tenant and k.key = key_delete.key
  returning true, k.revision into done, revision;
  insert into :schema.$twin$key_change (revision, xid, changed_at, modified_at, kind, norev, tenant, key)
  values (key_delete.revision, pg_current_xact_id(), greatest(at, kv.modified_at),
    greatest(at, kv.modified_at), 'deleted', false, key_delete.tenant, key_delete.key);
  $end$
  if :schema.key_is_watched() then
    perform :schema.tell_key_changed(tenant, ephemeral, key);
  end if;
end
$body$
$function$);

-- Has a live key expire `ttl_ms` from now; null: never. Value, revision and time of modification stay. In the history the
-- change is there like a value of its own, so that a read as of a time finds the expiry that was known then.
select :schema.create_key_function($function$
create function :schema.key_extend(tenant text, ephemeral boolean, key text, ttl_ms bigint,
  out done boolean, out revision bigint, out expires_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $body$
#variable_conflict use_column
declare
  kv record;
  at timestamptz;
begin
  if (octet_length(key) between 1 and 1024 and not starts_with(key, '__holdfast:') and (ttl_ms > 0) is not false) is not true then
    perform :schema.check_key(key, 0);
    raise exception using errcode = 'HF001', message = 'ttl_ms: must be greater than 0; null is no expiry';
  end if;
  $each$
  select k.revision, k.modified_at, k.expires_at, k.deleted, k.norev, k.value into kv
  from :schema.$twin$key_value k where k.tenant = key_extend.tenant and k.key = key_extend.key for no key update;
  -- Also says that places are about to be drawn.
  at := case when :schema.enter_key_log(ephemeral) then clock_timestamp() end;
  if kv.revision is null or kv.deleted or kv.expires_at <= at then
    done := false;
    revision := coalesce(kv.revision, -1);
    return;
  end if;
  update :schema.$twin$key_value k set xid = pg_current_xact_id(), expires_at = at + ttl_ms * interval '1 millisecond'
  where k.tenant = key_extend.tenant and k.key = key_extend.key
  returning true, k.revision, k.expires_at into done, revision, expires_at;
  insert into :schema.$twin$key_change (revision, xid, changed_at, modified_at, expires_at, kind, norev, tenant, key, value)
  values (key_extend.revision, pg_current_xact_id(), greatest(at, kv.modified_at), kv.modified_at,
    key_extend.expires_at, 'extended', kv.norev, key_extend.tenant, key_extend.key, kv.value);
  $end$
  if :schema.key_is_watched() then
    perform :schema.tell_key_changed(tenant, ephemeral, key);
  end if;
end
$body$
$function$);

-- The live value of a key. Not found: revision -1.
select :schema.create_key_function($function$
create function :schema.key_get(tenant text, ephemeral boolean, key text,
  out found boolean, out value bytea, out revision bigint, out expires_at timestamptz, out modified_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $body$
#variable_conflict use_column
declare
  -- By its name it would be what PL/pgSQL calls so.
  answer alias for $4;
begin
  $each$
  select k.value, k.revision, k.expires_at, k.modified_at into value, revision, expires_at, modified_at
  from :schema.$twin$key_value k
  where k.tenant = key_get.tenant and k.key = key_get.key and not k.deleted and (k.expires_at > clock_timestamp()) is not false;
  $end$
  answer := revision is not null;
  if not answer then revision := -1; end if;
end
$body$
$function$);

-- The value that a key had at a revision: the newest one while the key is live, or one that the history still has.
-- -1 is the newest. The revision of a deletion has none. No expiry is told: it is that of the key, not of the revision.
select :schema.create_key_function($function$
create function :schema.key_get_revision(tenant text, ephemeral boolean, key text, at_revision bigint,
  out found boolean, out value bytea, out revision bigint, out expires_at timestamptz, out modified_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $body$
#variable_conflict use_column
declare
  -- By its name it would be what PL/pgSQL calls so.
  answer alias for $5;
begin
  $each$
  select x.value, x.revision, x.modified_at into value, revision, modified_at from (
    select k.value, k.revision, k.modified_at from :schema.$twin$key_value k
    where k.tenant = key_get_revision.tenant and k.key = key_get_revision.key and at_revision in (-1, k.revision)
      and not k.deleted and (k.expires_at > clock_timestamp()) is not false
    union all
    select c.value, c.revision, c.modified_at from :schema.$twin$key_change c
    where c.tenant = key_get_revision.tenant and c.key = key_get_revision.key and c.revision = at_revision
      and not c.norev and c.value is not null
  ) x limit 1;
  $end$
  answer := revision is not null;
  if not answer then revision := -1; end if;
end
$body$
$function$);

-- What `key_get` would have found at the end of the millisecond `at_ms` (since 1970), as far as the history goes back and
-- without values of `norev`. Reads back over what was changed since.
select :schema.create_key_function($function$
create function :schema.key_get_as_of(tenant text, ephemeral boolean, key text, at_ms bigint,
  out found boolean, out value bytea, out revision bigint, out expires_at timestamptz, out modified_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $body$
#variable_conflict use_column
declare
  -- By its name it would be what PL/pgSQL calls so.
  answer alias for $5;
begin
  $each$
  select x.value, x.revision, x.expires_at, x.modified_at into value, revision, expires_at, modified_at from (
    select c.value, c.revision, c.expires_at, c.modified_at from :schema.$twin$key_change c
    where c.tenant = key_get_as_of.tenant and c.key = key_get_as_of.key and not c.norev
      and c.changed_at < to_timestamp((at_ms + 1) / 1000.0)
    order by c.revision desc, c.place desc limit 1
  ) x where x.value is not null and (x.expires_at > to_timestamp(at_ms / 1000.0)) is not false;
  $end$
  answer := revision is not null;
  if not answer then revision := -1; end if;
end
$body$
$function$);

-- The live keys from `low` on and below `high` (null: to the end) that start with `prefix`, in byte order, now or as of a
-- time; those deeper than `prefix` only if `deep`.
select :schema.create_key_function($function$
create function :schema.key_range(tenant text, ephemeral boolean, prefix text, deep boolean, as_of_ms bigint)
returns table (key text, value bytea, revision bigint, expires_at timestamptz, modified_at timestamptz)
language plpgsql volatile set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set enable_bitmapscan = off as $body$
#variable_conflict use_column
declare
  high text := :schema.key_prefix_end(prefix);
  skip integer := length(prefix) + 1;
begin
  $each$
  if as_of_ms is null then
    return query select k.key, k.value, k.revision, k.expires_at, k.modified_at from :schema.$twin$key_value k
      where k.tenant = key_range.tenant and k.key >= prefix and k.key < high
        and (deep or strpos(substr(k.key, skip), '/') = 0)
        and not k.deleted and (k.expires_at > clock_timestamp()) is not false
      order by k.key;
  else
    return query select k.key, x.value, x.revision, x.expires_at, x.modified_at from :schema.$twin$key_value k
      cross join lateral (
        select c.value, c.revision, c.expires_at, c.modified_at from :schema.$twin$key_change c
        where c.tenant = k.tenant and c.key = k.key and not c.norev and c.changed_at < to_timestamp((as_of_ms + 1) / 1000.0)
        order by c.revision desc, c.place desc limit 1
      ) x
      where k.tenant = key_range.tenant and k.key >= prefix and k.key < high
        and (deep or strpos(substr(k.key, skip), '/') = 0)
        and x.value is not null and (x.expires_at > to_timestamp(as_of_ms / 1000.0)) is not false
      order by k.key;
  end if;
  $end$
end
$body$
$function$);

-- The live keys directly in a bucket, which is what stands before the last `/` of a key; now, or as of a time.
create function :schema.key_bucket(tenant text, ephemeral boolean, bucket text, as_of_ms bigint)
returns table (key text, value bytea, revision bigint, expires_at timestamptz, modified_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
#variable_conflict use_column
begin
  return query select r.* from :schema.key_range(key_bucket.tenant, key_bucket.ephemeral, key_bucket.bucket || '/', false, key_bucket.as_of_ms) r;
end
$function$;

-- The live keys that start with `prefix`, character by character; now, or as of a time.
create function :schema.key_prefix(tenant text, ephemeral boolean, prefix text, as_of_ms bigint)
returns table (key text, value bytea, revision bigint, expires_at timestamptz, modified_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
#variable_conflict use_column
begin
  return query select r.* from :schema.key_range(key_prefix.tenant, key_prefix.ephemeral, key_prefix.prefix, true, key_prefix.as_of_ms) r;
end
$function$;

-- Locks keys until the transaction ends, in byte order: those with `writes` against all, the others against being
-- written. One that does not exist gets a row without a revision, which `key_unlock_unwritten` takes away. Waits for each as
-- long as `lock_timeout` says; with `until`, for all of them together until then.
select :schema.create_key_function($function$
create function :schema.key_lock(tenant text, ephemeral boolean, keys text[], writes boolean[], until timestamptz default null)
returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $body$
#variable_conflict use_column
declare
  wanted record;
begin
  $each$
  for wanted in select n.key, bool_or(n.writes) as writes from unnest(keys, writes) as n (key, writes)
    group by n.key order by n.key collate "C"
  loop
    loop
      if wanted.writes then
        perform from :schema.$twin$key_value k where k.tenant = key_lock.tenant and k.key = wanted.key for no key update;
      else
        perform from :schema.$twin$key_value k where k.tenant = key_lock.tenant and k.key = wanted.key for share;
      end if;
      exit when found;
      perform :schema.check_key(wanted.key, 0);
      perform :schema.enter_key_buckets(tenant, ephemeral, wanted.key);
      insert into :schema.$twin$key_value (revision, xid, modified_at, deleted, norev, tenant, key, value)
      values (-1, pg_current_xact_id(), '-infinity', true, true, key_lock.tenant, wanted.key, '') on conflict do nothing;
    end loop;
    if until is not null then
      perform set_config('lock_timeout', greatest(1, ceil(date_part('epoch', until - clock_timestamp()) * 1000))::text, true);
    end if;
  end loop;
  $end$
end
$body$
$function$);

-- Takes away the rows of keys that were locked and never written. One that somebody else holds too stays with him.
select :schema.create_key_function($function$
create function :schema.key_unlock_unwritten(tenant text, ephemeral boolean, keys text[]) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $body$
#variable_conflict use_column
begin
  $each$
  delete from :schema.$twin$key_value k where k.tenant = key_unlock_unwritten.tenant and k.revision = -1 and k.key in (
    select u.key from :schema.$twin$key_value u
    where u.tenant = key_unlock_unwritten.tenant and u.key = any (keys) and u.revision = -1
    order by u.key for update skip locked);
  $end$
end
$body$
$function$);

-- Keeps a listing true until the transaction ends: no key that starts with `bucket_or_prefix` is created, changed or
-- deleted by others. Call it before listing. A bucket is given with its closing slash, lest keys beside it are held too.
select :schema.create_key_function($function$
create function :schema.key_guard(tenant text, ephemeral boolean, bucket_or_prefix text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $body$
#variable_conflict use_column
declare
  high text := :schema.key_prefix_end(bucket_or_prefix);
  parts text[] := string_to_array(bucket_or_prefix, '/');
begin
  perform pg_advisory_xact_lock(:schema.key_bucket_lock(tenant, ephemeral,
    case when cardinality(parts) > 1 then array_to_string(trim_array(parts, 1), '/') end));
  $each$
  perform from :schema.$twin$key_value k
  where k.tenant = key_guard.tenant and k.key >= bucket_or_prefix and k.key < high
  order by k.key for share;
  $end$
end
$body$
$function$);

-- `key_set` for several keys, in byte order, so that two of these never wait for each other. One transaction: what is
-- refused is an answer, an error undoes all. A key that comes twice is set twice. `items` is an array of
--   { k: key, v: value in hexadecimal with \x before it, t: time to live in ms, a: if absent, p: if present,
--     iv: if it has this value, ir: if it has this revision, n: norev }
-- Answers by the items' places from 1 on.
create function :schema.key_set_many(tenant text, ephemeral boolean, items json)
returns table (item bigint, done boolean, revision bigint, value_now bytea, expires_at timestamptz, modified_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
  i record;
begin
  for i in select x.* from rows from (json_to_recordset(items) as
      (k text, v bytea, t bigint, a boolean, p boolean, iv bytea, ir bigint, n boolean)) with ordinality x (k, v, t, a, p, iv, ir, n, o)
    order by x.k collate "C", x.o
  loop
    return query select i.o, s.done, s.revision, s.value_now, s.expires_at, s.modified_at
      from :schema.key_set(tenant, ephemeral, i.k, i.v, i.t, i.a, i.p, i.iv, i.ir, i.n) s;
  end loop;
end
$function$;

-- `key_delete` for several keys, as `key_set_many` sets them. `items` is an array of { k: key, ir: if it has this revision }.
create function :schema.key_delete_many(tenant text, ephemeral boolean, items json)
returns table (item bigint, done boolean, revision bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
declare
  i record;
begin
  for i in select x.* from rows from (json_to_recordset(items) as (k text, ir bigint)) with ordinality x (k, ir, o)
    order by x.k collate "C", x.o
  loop
    return query select i.o, d.done, d.revision from :schema.key_delete(tenant, ephemeral, i.k, null, i.ir) d;
  end loop;
end
$function$;

-- Adds to a whole number in a key's value, written in decimal digits; an absent key counts as 0 and then gets `ttl_ms`.
-- A live one keeps its expiry. Not done: the value is no number of 64 bits ('not-a-number'), or the sum would be none
-- ('out-of-range'); nothing was changed.
select :schema.create_key_function($function$
create function :schema.key_increment(tenant text, ephemeral boolean, key text, by bigint, ttl_ms bigint,
  out problem text, out total bigint, out revision bigint, out expires_at timestamptz, out modified_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $body$
#variable_conflict use_column
declare
  kept timestamptz;
  was bytea;
  number numeric := 0;
begin
  perform :schema.check_key(key, coalesce(ttl_ms, 0));
  perform :schema.key_lock(tenant, ephemeral, array[key], array[true]);
  $each$
  select k.value, k.expires_at, k.revision into was, kept, revision from :schema.$twin$key_value k
  where k.tenant = key_increment.tenant and k.key = key_increment.key and not k.deleted and (k.expires_at > clock_timestamp()) is not false;
  if was is not null then
    -- Bytes, not text: what is no text in the database's encoding is no number either.
    if octet_length(was) > 20 or encode(was, 'escape') !~ '^[+-]?[0-9]+$' then
      problem := 'not-a-number';
      return;
    end if;
    number := encode(was, 'escape')::numeric;
    if number not between -9223372036854775808 and 9223372036854775807 then
      problem := 'not-a-number';
      return;
    end if;
  end if;
  number := number + by;
  if number not between -9223372036854775808 and 9223372036854775807 then
    problem := 'out-of-range';
    return;
  end if;
  total := number;
  select s.revision, s.expires_at, s.modified_at into revision, expires_at, modified_at from :schema.key_set(tenant, ephemeral, key,
    convert_to(total::text, 'UTF8'), case when was is null then ttl_ms end, null, null, null, null, null) s;
  if kept is not null then
    expires_at := kept;
    update :schema.$twin$key_value k set expires_at = kept where k.tenant = key_increment.tenant and k.key = key_increment.key;
    update :schema.$twin$key_change c set expires_at = kept where c.tenant = key_increment.tenant and c.key = key_increment.key
      and c.revision = key_increment.revision and not c.norev;
  end if;
  $end$
end
$body$
$function$);

-- What a key was in a snapshot of the server: exact whatever the order of commits, without values of `norev`. Expiry is
-- judged at `at_ms`.
select :schema.create_key_function($function$
create function :schema.key_get_in_snapshot(tenant text, ephemeral boolean, key text, seen pg_snapshot, at_ms bigint,
  out found boolean, out value bytea, out revision bigint, out expires_at timestamptz, out modified_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $body$
#variable_conflict use_column
declare
  answer alias for $6;
begin
  $each$
  select x.value, x.revision, x.expires_at, x.modified_at into value, revision, expires_at, modified_at from (
    select c.value, c.revision, c.expires_at, c.modified_at from :schema.$twin$key_change c
    where c.tenant = key_get_in_snapshot.tenant and c.key = key_get_in_snapshot.key and not c.norev
      and pg_visible_in_snapshot(c.xid, seen)
    order by c.revision desc, c.place desc limit 1
  ) x where x.value is not null and (x.expires_at > to_timestamp(at_ms / 1000.0)) is not false;
  $end$
  answer := revision is not null;
  if not answer then revision := -1; end if;
end
$body$
$function$);

-- One page of the live keys that are `low` or above (`above`: only above) and below `high` (null: no end), in byte order;
-- `depth` is the number of characters after which no `/` may come, null: any may. With `seen`, as they were in that snapshot
-- and at `at_ms`; a value of `norev` is found while it is the newest, unless `exact`. With `at_ms` alone, as of that time.
-- The row without a key comes last: the snapshot and the time of this page.
select :schema.create_key_function($function$
create function :schema.key_page(tenant text, ephemeral boolean, low text, above boolean, high text, depth integer, max_rows integer,
  seen pg_snapshot, at_ms bigint, exact boolean)
returns table (key text, value bytea, revision bigint, expires_at timestamptz, modified_at timestamptz, seen_now text, now_ms bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set enable_bitmapscan = off as $body$
#variable_conflict use_column
declare
  -- The end of the millisecond counts as it.
  at timestamptz := to_timestamp((at_ms + 1) / 1000.0);
  live timestamptz := to_timestamp(at_ms / 1000.0);
begin
  if high is null then high := :schema.key_prefix_end(''); end if;
  $each$
  if at_ms is null then
    return query with page as (
      select k.key, k.value, k.revision, k.expires_at, k.modified_at from :schema.$twin$key_value k
      where k.tenant = key_page.tenant and k.key >= low and not (above and k.key = low) and k.key < high
        and (depth is null or strpos(substr(k.key, depth + 1), '/') = 0)
        and not k.deleted and (k.expires_at > clock_timestamp()) is not false
      order by k.key limit max_rows
    )
    select p.key, p.value, p.revision, p.expires_at, p.modified_at, null::text, null::bigint from page p
    union all
    select null, null, null, null, null, pg_current_snapshot()::text, floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
  else
    return query select k.key, x.value, x.revision, x.expires_at, x.modified_at, null::text, null::bigint
      from :schema.$twin$key_value k
      cross join lateral (
        select k.value, k.revision, k.expires_at, k.modified_at, k.deleted as gone
        where not exact and seen is not null
          and (pg_visible_in_snapshot(k.xid, seen) or k.xid = pg_current_xact_id_if_assigned())
        union all
        (select c.value, c.revision, c.expires_at, c.modified_at, c.value is null from :schema.$twin$key_change c
          where c.tenant = k.tenant and c.key = k.key and not c.norev
            and case when seen is null then c.changed_at < at else pg_visible_in_snapshot(c.xid, seen) end
          order by c.revision desc, c.place desc limit 1)
        limit 1
      ) x
      where k.tenant = key_page.tenant and k.key >= low and not (above and k.key = low) and k.key < high
        and (depth is null or strpos(substr(k.key, depth + 1), '/') = 0)
        and not x.gone and (x.expires_at > live) is not false
      order by k.key limit max_rows;
  end if;
  $end$
end
$body$
$function$);

-- The transactions that may have drawn places of the log and not ended, and the earliest minute of their draws.
create function :schema.key_writers(ephemeral boolean, out writers text[], out since_minute integer)
language sql volatile set search_path = pg_catalog, pg_temp as $function$
  select coalesce(array_agg(distinct l.virtualtransaction), '{}'), min(l.objid::bigint)::integer from pg_locks l
  where l.locktype = 'advisory' and l.objsubid = 2 and l.granted
    and l.database = (select d.oid from pg_database d where d.datname = current_database())
    and l.classid::bigint = (:schema.key_log_number(ephemeral)::bigint & 4294967295)
$function$;

-- Where a watcher begins: everything that was committed before is at `place` or below it. What `writers` have written there
-- and commit later is not in `seen`; `floor` is below all of it.
select :schema.create_key_function($function$
create function :schema.key_watch_start(ephemeral boolean, out place bigint, out writers text[], out seen pg_snapshot, out floor bigint)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $body$
#variable_conflict use_column
declare
  since_minute integer;
begin
  if ephemeral then perform :schema.ephemeral_epoch(); end if;
  -- In this order: who has drawn a place up to it and is not among the writers has ended, and is seen.
  $each$
  select case when s.is_called then s.last_value else s.last_value - 1 end into place from :schema.$twin$key_place_seq s;
  select w.writers, w.since_minute into writers, since_minute from :schema.key_writers(ephemeral) w;
  seen := pg_current_snapshot();
  floor := place;
  if cardinality(writers) > 0 then
    select coalesce(max(c.place), -1) into floor from :schema.$twin$key_change c
    where c.place <= key_watch_start.place and c.changed_at < to_timestamp((since_minute - 2) * 60.0);
  end if;
  $end$
end
$body$
$function$);

-- The changes of the keys that a watcher watches, in order of their places, from `after` on to where the first gap is that
-- may still be filled; not more than `max_places` places at once. A gap up to `gap_to` stays one when all of
-- `gap_writers`, who were at work when it was seen, have ended. With `seen`: only what is not in it, up to `gap_to`.
-- The last row has no key: how far this was (null: changes after `after` are gone from the log), and what it waits for.
select :schema.create_key_function($function$
create function :schema.key_changes(tenant text, ephemeral boolean, low text, high text, depth integer, after bigint, gap_to bigint,
  gap_writers text[], seen pg_snapshot, max_places integer)
returns table (place bigint, kind :schema.key_change_kind, key text, value bytea, revision bigint, expires_at timestamptz,
  changed_at timestamptz, next_gap_to bigint, next_writers text[])
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set enable_bitmapscan = off as $body$
#variable_conflict use_column
declare
  waiting text[] := '{}';
  dead_to bigint := after;
  until bigint;
  top bigint;
  trimmed bigint;
begin
  if cardinality(gap_writers) > 0 then
    select array(select unnest(gap_writers) intersect select unnest(w.writers)) into waiting from :schema.key_writers(ephemeral) w;
  end if;
  if gap_to is not null and cardinality(waiting) = 0 then dead_to := gap_to; end if;
  $each$
  if seen is not null then
    until := case when cardinality(waiting) = 0 then gap_to else after end;
    top := gap_to;
  else
    select (array_agg(p.before order by p.place) filter (where p.place - p.before > 1 and p.place - 1 > dead_to))[1], max(p.place)
    into until, top from (
      select n.place, lag(n.place, 1, after) over (order by n.place) as before from (
        select c.place from :schema.$twin$key_change c where c.place > after order by c.place limit max_places
      ) n
    ) p;
    if until is null then
      until := coalesce(top, after);
      top := null;
    elsif cardinality(waiting) > 0 then
      top := gap_to;
    else
      select w.writers into waiting from :schema.key_writers(ephemeral) w;
    end if;
  end if;
  if until > after then
    return query select c.place, c.kind, c.key, c.value, c.revision, c.expires_at, c.changed_at, null::bigint, null::text[]
    from :schema.$twin$key_change c
    where c.place > after and c.place <= until and c.tenant = key_changes.tenant and c.key >= low and (high is null or c.key < high)
      and (depth is null or strpos(substr(c.key, depth + 1), '/') = 0)
      and (seen is null or not pg_visible_in_snapshot(c.xid, seen))
    order by c.place;
  end if;
  -- Read last: what was taken away meanwhile has raised it.
  select l.trimmed_to into trimmed from :schema.$twin$key_log l;
  return query select case when trimmed <= after or seen is not null and trimmed <= gap_to then until end, null:::schema.key_change_kind, null::text,
    null::bytea, null::bigint, null::timestamptz, null::timestamptz, top, waiting;
  $end$
end
$body$
$function$);

-- Says for `ms` that somebody watches. Safe to repeat.
create function :schema.key_watch_keep(watcher uuid, ephemeral boolean, tenant text, prefix text, ms integer) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $function$
#variable_conflict use_column
declare
  until timestamptz := clock_timestamp() + ms * interval '1 millisecond';
begin
  insert into :schema.key_watcher (id, expires_at, ephemeral, tenant, prefix)
  values (watcher, until, key_watch_keep.ephemeral, key_watch_keep.tenant, key_watch_keep.prefix)
  on conflict (id) do update set expires_at = excluded.expires_at;
  perform setval(':schema.key_watch_seq', ceil(extract(epoch from until))::bigint)
  where coalesce(pg_sequence_last_value(':schema.key_watch_seq'), 0) < extract(epoch from until);
  delete from :schema.key_watcher w where w.id in (
    select o.id from :schema.key_watcher o where o.expires_at < clock_timestamp() - interval '1 minute' for update skip locked limit 100);
end
$function$;

-- Marks up to `max_rows` expired keys as such, and frees their values. A key that is locked is left for the next time, one
-- that was extended meanwhile is live. Returns how many.
select :schema.create_key_function($function$
create function :schema.key_sweep(ephemeral boolean, max_rows integer) returns integer
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off as $body$
#variable_conflict use_column
declare
  at timestamptz := clock_timestamp();
  swept integer;
  topics integer;
begin
  $each$
  perform :schema.enter_key_log(ephemeral);
  -- By ctid, and further down by an array: with few keys in its statistics, a join would go through all of the table.
  with gone as (
    update :schema.$twin$key_value k set deleted = true, value = '', xid = pg_current_xact_id()
    where k.expires_at <= at and k.ctid = any (array(
      select e.ctid from :schema.$twin$key_value e
      where not e.deleted and e.expires_at is not null and e.expires_at <= at
      order by e.expires_at limit max_rows for no key update skip locked))
    returning k.tenant, k.key, k.revision, k.expires_at, k.modified_at
  ), logged as (
    insert into :schema.$twin$key_change (revision, xid, changed_at, modified_at, expires_at, kind, norev, tenant, key)
    select g.revision, pg_current_xact_id(), greatest(at, g.modified_at), g.modified_at,
      g.expires_at, 'expired', true, g.tenant, g.key
    from gone g
    returning $twin$key_change.tenant, $twin$key_change.key
  )
  select count(*), count(*) filter (where exists (select from :schema.key_watcher w
    where w.expires_at > at and w.ephemeral = key_sweep.ephemeral and w.tenant = l.tenant and starts_with(l.key, w.prefix)))
  into swept, topics from logged l;
  $end$
  if topics > 0 then perform pg_notify(:hint_channel, 'keys'); end if;
  return swept;
end
$body$
$function$);

-- Looks at up to `max_rows` changes of the log, going on where the last call ended, and deletes those that nobody needs:
-- for an hour all are kept for watchers; then what is not part of the history goes, and what another change of the key has
-- followed if that was longer ago than `kept_days` (0: never), or more than `kept_changes` (0: any number) came after; but
-- nothing that a live hold reads. Returns how many were looked at: fewer than `max_rows` at the end of the log.
select :schema.create_key_function($function$
create function :schema.key_trim(ephemeral boolean, kept_days float8, kept_changes integer, max_rows integer,
  watched interval default '1 hour') returns integer
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp
  set enable_seqscan = off set enable_bitmapscan = off set enable_sort = off as $body$
#variable_conflict use_column
declare
  from_place bigint;
  last_place bigint;
  looked integer;
  highest bigint;
  edge timestamptz := clock_timestamp() - watched;
begin
  $each$
  select l.trim_place into from_place from :schema.$twin$key_log l for update skip locked;
  if from_place is null then return 0; end if;
  delete from :schema.key_hold h where h.ephemeral = key_trim.ephemeral and h.expires_at < clock_timestamp() - interval '1 minute';
  with batch as (
    select c.place, c.norev, c.tenant, c.key, c.revision, c.changed_at from :schema.$twin$key_change c
    where c.place > from_place order by c.place limit max_rows
  ), old as (
    select b.* from batch b where b.changed_at < edge
  ), unneeded as (
    select o.place from old o where o.norev
    union all
    select o.place from old o
    cross join lateral (
      select n.changed_at, n.xid from :schema.$twin$key_change n
      where n.tenant = o.tenant and n.key = o.key and not n.norev and (n.revision, n.place) > (o.revision, o.place)
      order by n.revision, n.place limit 1
    ) next
    where not o.norev and next.changed_at < edge
      and (kept_days > 0 and next.changed_at < clock_timestamp() - kept_days * interval '1 day'
        or kept_changes > 0 and exists (
          select from :schema.$twin$key_change n
          where n.tenant = o.tenant and n.key = o.key and not n.norev and (n.revision, n.place) > (o.revision, o.place)
          order by n.revision, n.place offset kept_changes limit 1))
      and not exists (
        select from :schema.key_hold h where h.ephemeral = key_trim.ephemeral and h.tenant = o.tenant
          and h.expires_at > clock_timestamp()
          and case when h.is_exact then not pg_visible_in_snapshot(next.xid, h.held) else next.changed_at > h.held_at end)
  ), gone as (
    delete from :schema.$twin$key_change c where c.place = any (array(select u.place from unneeded u)) returning c.place
  )
  select (select count(*) from batch), (select max(b.place) from batch b), (select max(g.place) from gone g)
  into looked, last_place, highest;
  update :schema.$twin$key_log l set trim_place = case when looked < max_rows then -1 else last_place end,
    trimmed_to = greatest(l.trimmed_to, highest);
  $end$
  return looked;
end
$body$
$function$);

drop function :schema.create_key_function(text);

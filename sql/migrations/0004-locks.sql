-- compatible: adds tables and functions; older workers go on and use none of them.
-- Takes no lock that anything waits for: every object is new.

-- One row for each resource that was ever locked, kept after release. What a grant, an extension and a release change is
-- in no index, so that they stay on the row's page.
create table :schema.lock (
  expires_at timestamptz,                   -- held until then; null: never granted
  acquired_at timestamptz,
  waited_until timestamptz,                 -- so long somebody waits for it, and has to be told when it is free
  prune_at timestamptz not null default clock_timestamp() + interval '1 day',   -- looked at then, whether it is still used
  token bigint default nextval(':schema.fencing_token_seq'),   -- of the newest grant, which sets it to its default
  tenant text collate "C" not null,
  resource text collate "C" not null,
  owner text collate "C",                   -- null: nobody's
  constraint lock_pkey primary key (tenant, resource)
) with (fillfactor = 70, vacuum_truncate = false, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create index lock_prune_idx on :schema.lock (prune_at);

-- The same for locks that a crash of the server may free. A name space of its own.
create unlogged table :schema.lock_ephemeral (
  expires_at timestamptz,
  acquired_at timestamptz,
  waited_until timestamptz,
  prune_at timestamptz not null default clock_timestamp() + interval '1 day',
  token bigint default nextval(':schema.fencing_token_seq'),
  tenant text collate "C" not null,
  resource text collate "C" not null,
  owner text collate "C",
  constraint lock_ephemeral_pkey primary key (tenant, resource)
) with (fillfactor = 70, vacuum_truncate = false, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create index lock_ephemeral_prune_idx on :schema.lock_ephemeral (prune_at);

-- Rows that come and go at once leave pages that are never given back: a plan that a session makes while there are few locks,
-- and keeps, goes by the index all the same.
insert into :schema.lock (tenant, resource, token) select '', i::text, null from generate_series(1, 2500) i;
insert into :schema.lock_ephemeral (tenant, resource, token) select '', i::text, null from generate_series(1, 2500) i;
delete from :schema.lock;
delete from :schema.lock_ephemeral;

-- What the notification of a lock is called: of fixed length, whatever the names are. `locks/topic.ts` makes the same.
create function :schema.lock_topic(durability text, tenant text, resource text) returns text
language sql stable set search_path = pg_catalog, pg_temp as $function$
  select 'lock:' || left(encode(sha256(convert_to(durability || chr(10) || tenant || chr(10) || resource, 'UTF8')), 'hex'), 32)
$function$;

-- Wakes those who wait for a lock. Always true.
create function :schema.tell_lock_free(durability text, tenant text, resource text) returns boolean
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
begin
  perform pg_notify(:hint_channel, :schema.lock_topic(durability, tenant, resource));
  return true;
end
$function$;

-- Each function that follows is made twice, for the two tables: `$lock$` is the table, `$twin$` what its functions' names
-- end in, `$durability$` what users call it, `$record$` a statement that only ephemeral grants need.
do $function$
declare
  twin record;
  template text;
begin
  for twin in select * from (values
    ('lock', '', 'persistent', ''),
    ('lock_ephemeral', '_ephemeral', 'ephemeral', 'perform pg_logical_emit_message(true, ''holdfast'', '''');')
  ) t (lock, suffix, durability, record) loop
    foreach template in array array[

-- Grants the lock to `the_owner` if it is free, or says that the owner has it already (`again`): then with the same token,
-- and the lease as it is. Otherwise `held` is false, and `left_ms` how long the lease of the holder still is; null if that
-- is not known, because a transaction that is open has the row. Waits for nobody.
--
-- A try that fails leaves no row lock in a caller's transaction, and one that is refused writes nothing, unless `wait_ms`
-- says that the caller goes on trying for so long: then the row is marked, for the release to announce it. Give null in a
-- transaction that goes on: the mark would keep the holder from releasing.
--
-- A grant takes the row FOR UPDATE, so that it comes after every transaction that has asserted the lock. The token is drawn
-- while it is held. Whatever the session says, the commit of a grant waits for the disk, and for a synchronous standby.
$template$
create function :schema.acquire_lock$twin$(the_tenant text, the_resource text, the_owner text, lease_ms float8, wait_ms float8,
  out held boolean, out again boolean, out fencing_token bigint, out ends_at timestamptz, out left_ms float8) returns record
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $body$
declare
  seen :schema.$lock$%rowtype;
  is_there boolean;
  former_timeout text;
  granted_at timestamptz;
begin
  held := false;
  again := false;
  select l.* into seen from :schema.$lock$ l where l.tenant = the_tenant and l.resource = the_resource;
  is_there := found;

  if seen.owner <> the_owner and seen.expires_at >= clock_timestamp() then
    left_ms := date_part('epoch', seen.expires_at - clock_timestamp()) * 1000;
    if wait_ms is null or seen.waited_until > clock_timestamp() + least(wait_ms, 30000) * interval '1 millisecond' then
      return;
    end if;
    -- Looked at again under the lock: a release before it would not have seen the mark, and the lock is free then. An
    -- asserting transaction is not in the way of the mark.
    select l.* into seen from :schema.$lock$ l where l.tenant = the_tenant and l.resource = the_resource
    for no key update skip locked;
    if not found then
      left_ms := null;
      return;
    end if;
    if seen.owner <> the_owner and seen.expires_at >= clock_timestamp() then
      left_ms := date_part('epoch', seen.expires_at - clock_timestamp()) * 1000;
      -- Nothing is lost with a mark: whoever waits also looks.
      perform set_config('synchronous_commit', 'off', true);
      update :schema.$lock$ l set waited_until = greatest(l.waited_until,
        clock_timestamp() + (least(wait_ms, 60000) + 1000) * interval '1 millisecond')
      where l.tenant = the_tenant and l.resource = the_resource;
      return;
    end if;
  end if;

  if (seen.owner = the_owner and seen.expires_at >= clock_timestamp()) is not true then
    begin
      if is_there then
        select l.* into seen from :schema.$lock$ l where l.tenant = the_tenant and l.resource = the_resource
        for update skip locked;
        if not found then
          left_ms := null;
          return;
        end if;
      else
        -- Somebody may be making the row in a transaction that is open. There is no way to pass over that one but a short
        -- wait: long enough for what an insert has to wait for otherwise, such as the table to grow.
        former_timeout := current_setting('lock_timeout');
        perform set_config('lock_timeout', '20ms', true);
        insert into :schema.$lock$ (tenant, resource, token) values (the_tenant, the_resource, null) on conflict do nothing;
        is_there := not found;
        perform set_config('lock_timeout', former_timeout, true);
        if is_there then
          select l.* into seen from :schema.$lock$ l where l.tenant = the_tenant and l.resource = the_resource
          for update skip locked;
          if not found then
            left_ms := null;
            return;
          end if;
        end if;
      end if;
      -- It was granted between the look and the lock. The row lock is given back by going back.
      if seen.expires_at >= clock_timestamp() and seen.owner is not null then
        raise exception using errcode = 'HF099';
      end if;
      granted_at := clock_timestamp();
      update :schema.$lock$ l set owner = the_owner, token = default,
        expires_at = granted_at + lease_ms * interval '1 millisecond', acquired_at = granted_at
      where l.tenant = the_tenant and l.resource = the_resource
      returning l.* into seen;
      if current_setting('synchronous_commit') not in ('on', 'remote_apply') then
        perform set_config('synchronous_commit', 'on', true);
      end if;
      $record$
      held := true;
    exception
      -- 40001: the row is newer than the snapshot of a caller's transaction, which can never have it.
      when sqlstate 'HF099' or lock_not_available or serialization_failure then
        held := false;
    end;
  end if;

  if not held and seen.owner = the_owner and seen.expires_at >= clock_timestamp() then
    held := true;
    again := true;
  end if;
  if held then
    fencing_token := seen.token;
    ends_at := seen.expires_at;
  end if;
  if seen.expires_at >= clock_timestamp() then
    left_ms := date_part('epoch', seen.expires_at - clock_timestamp()) * 1000;
  end if;
end
$body$
$template$,

-- Lets the lease end `lease_ms` from now, sooner than before too. Null if the lock is not that owner's any more, or its
-- lease is over. Waits for a transaction that has the row.
$template$
create function :schema.extend_lock$twin$(the_tenant text, the_resource text, the_owner text, the_token bigint, lease_ms float8,
  out ends_at timestamptz, out left_ms float8) returns record
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $body$
declare
  seen :schema.$lock$%rowtype;
begin
  select l.* into seen from :schema.$lock$ l where l.tenant = the_tenant and l.resource = the_resource for no key update;
  if seen.owner = the_owner and seen.token = coalesce(the_token, seen.token) and seen.expires_at >= clock_timestamp() then
    update :schema.$lock$ l set expires_at = clock_timestamp() + lease_ms * interval '1 millisecond'
    where l.tenant = the_tenant and l.resource = the_resource
    returning l.expires_at into ends_at;
    left_ms := date_part('epoch', ends_at - clock_timestamp()) * 1000;
    if ends_at < seen.expires_at and seen.waited_until >= clock_timestamp() then
      perform :schema.tell_lock_free('$durability$', the_tenant, the_resource);
    end if;
  end if;
end
$body$
$template$,

-- Frees the lock: 'released', if it was that owner's, although its lease may be over; 'before', if nobody has had it since
-- it was released with that token; 'lost' otherwise. Waits for a transaction that has the row.
$template$
create function :schema.release_lock$twin$(the_tenant text, the_resource text, the_owner text, the_token bigint) returns text
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $body$
declare
  seen :schema.$lock$%rowtype;
begin
  update :schema.$lock$ l set owner = null, expires_at = least(l.expires_at, clock_timestamp())
  where l.tenant = the_tenant and l.resource = the_resource and l.owner = the_owner and l.token = coalesce(the_token, l.token)
  returning l.* into seen;
  if found then
    if seen.waited_until >= clock_timestamp() then
      perform :schema.tell_lock_free('$durability$', the_tenant, the_resource);
    end if;
    return 'released';
  end if;
  perform from :schema.$lock$ l
  where l.tenant = the_tenant and l.resource = the_resource and l.owner is null and l.token = the_token;
  return case when found then 'before' else 'lost' end;
end
$body$
$template$,

-- Takes the lock from whoever holds it, and says in the audit who did so and why. Null if nobody holds it.
$template$
create function :schema.force_release_lock$twin$(the_tenant text, the_resource text, actor text, subject text, reason text,
  out former_owner text, out fencing_token bigint) returns record
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $body$
declare
  seen :schema.$lock$%rowtype;
begin
  select l.* into seen from :schema.$lock$ l where l.tenant = the_tenant and l.resource = the_resource for no key update;
  if seen.owner is null or seen.expires_at < clock_timestamp() then return; end if;
  update :schema.$lock$ l set owner = null, expires_at = clock_timestamp()
  where l.tenant = the_tenant and l.resource = the_resource;
  insert into :schema.audit (actor, action, subject, note) values (actor, 'lock-release', subject, reason);
  if seen.waited_until >= clock_timestamp() then
    perform :schema.tell_lock_free('$durability$', the_tenant, the_resource);
  end if;
  former_owner := seen.owner;
  fencing_token := seen.token;
end
$body$
$template$,

-- Forgets up to `max_rows` resources that nobody has held for `kept`. Each row is looked at once a day. What anybody has
-- locked is passed over. Tokens go on rising: they do not come from the row.
$template$
create function :schema.prune_locks$twin$(kept interval, max_rows integer) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $body$
declare
  looked integer;
begin
  with due as materialized (
    select l.tenant, l.resource,
      coalesce(l.expires_at < clock_timestamp() - kept or (l.owner is null and l.expires_at <= clock_timestamp() - kept), true) as is_idle
    from :schema.$lock$ l
    where l.prune_at <= clock_timestamp() order by l.prune_at limit max_rows for update skip locked
  ), gone as (
    delete from :schema.$lock$ l using due d where d.is_idle and (l.tenant, l.resource) = (d.tenant, d.resource)
  ), stay as (
    update :schema.$lock$ l set prune_at = clock_timestamp() + interval '1 day' from due d
    where not d.is_idle and (l.tenant, l.resource) = (d.tenant, d.resource)
  )
  select count(*) into looked from due;
  return looked;
end
$body$
$template$

    ] loop
      execute replace(replace(replace(replace(template, '$lock$', twin.lock), '$twin$', twin.suffix),
        '$durability$', twin.durability), '$record$', twin.record);
    end loop;
  end loop;
end
$function$;

-- Refuses to go on, by HF010, unless the lock was granted with `token` and its lease is not over: for the transaction that
-- makes a guarded write. Until that transaction ends nobody else is granted the lock, also if its lease passes.
create function :schema.assert_lock(
  resource text,
  token bigint default nextval(':schema.fencing_token_seq'),
  tenant text default '',
  durability text default 'persistent'
) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $function$
declare
  held_until timestamptz;
begin
  if assert_lock.durability = 'ephemeral' then
    select case when l.token = assert_lock.token and l.owner is not null then l.expires_at end into held_until
    from :schema.lock_ephemeral l where l.tenant = assert_lock.tenant and l.resource = assert_lock.resource for key share;
  elsif assert_lock.durability = 'persistent' then
    select case when l.token = assert_lock.token and l.owner is not null then l.expires_at end into held_until
    from :schema.lock l where l.tenant = assert_lock.tenant and l.resource = assert_lock.resource for key share;
  else
    perform :schema.check_option('durability', false, 'must be persistent or ephemeral');
  end if;
  if held_until >= clock_timestamp() is not true then
    raise exception using errcode = 'HF010',
      message = format('the lock on "%s" is not held with token %s', assert_lock.resource, assert_lock.token),
      detail = json_build_object('resource', assert_lock.resource, 'token', assert_lock.token::text)::text,
      hint = 'Roll back. Whoever holds the lock now goes on from what is committed.';
  end if;
end
$function$;

-- compatible: adds a column and functions; older workers go on, and just do not prune.
-- Takes ACCESS EXCLUSIVE on id_range for a moment; only partition upkeep uses that table.

-- Since when ids of the range are handed out; null: not yet.
alter table :schema.id_range add column used_since timestamptz;
-- The first range after retention: the few rows of all older ranges that are still kept.
alter table :schema.id_range add column is_archive boolean not null default false;

-- Ends the range that ids come from now, if that is older than `max_age`, by moving the sequence on to the next
-- one: a range is pruned as a whole, and a quiet system would take years to fill one. Skipped ids mean nothing.
-- Returns true if it did. The lock serialises it with itself; the sequence would have to hand out half a
-- million ids between two lines for it to step back, which is why it leaves a range alone that is half used.
create function :schema.rotate_ids(max_age interval default '6 hours') returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp as $function$
declare
  next_id bigint;
  present :schema.id_range%rowtype;
begin
  lock table :schema.id_range in share row exclusive mode;
  select last_value into next_id from :schema.job_seq;
  select * into present from :schema.id_range r where r.first_id <= next_id and next_id < r.end_id;
  if not found then return false; end if;
  if present.used_since is null then
    update :schema.id_range set used_since = clock_timestamp() where first_id = present.first_id;
    return false;
  end if;
  if present.used_since > clock_timestamp() - max_age or next_id - present.first_id > (present.end_id - present.first_id) / 2
    or not exists (select from :schema.id_range r where r.first_id = present.end_id) then
    return false;
  end if;
  perform setval(':schema.job_seq'::regclass, present.end_id);
  return true;
end
$function$;

-- True for an outcome that nobody needs any more. Discarded jobs wait for a person, however long.
create function :schema.is_past_retention(state :schema.job_state, finished_at timestamptz, completed interval, cancelled interval)
returns boolean
language sql stable set search_path = pg_catalog, pg_temp as $function$
  select case state::text when 'completed' then finished_at < now() - completed
    when 'cancelled' then finished_at < now() - cancelled else false end
$function$;

-- Retires the oldest range whose ids are all handed out: drops its partitions, after moving what is still kept
-- (jobs that have not ended, discarded ones, results within their time) into the archive, whose range grows by it.
--
-- Answers 'retired', 'none' (no range is old enough to look at), 'kept' (more than `max_kept` rows would move), or
-- 'busy' (a lock was not free within 200 ms; nothing was done). The parents are locked while rows move, so
-- `max_kept` bounds how long claims and enqueues wait: some 100 ms for 20,000.
create function :schema.retire_range(completed interval, cancelled interval, max_kept integer default 20000) returns text
language plpgsql security definer set search_path = pg_catalog, pg_temp as $function$
declare
  oldest :schema.id_range%rowtype;
  archive :schema.id_range%rowtype;
  next_id bigint;
  kept bigint;
  parent text;
  key text;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('holdfast retire ' || :schema_literal, 0)) then return 'busy'; end if;
  select last_value into next_id from :schema.job_seq;
  select * into oldest from :schema.id_range r where not r.is_archive order by r.first_id limit 1;
  if oldest.end_id > next_id then return 'none'; end if;

  -- Mostly something recent is there at once; only a range that may be retired is read to its end.
  select count(*) into kept from (
    select from :schema.job j where j.id >= oldest.first_id and j.id < oldest.end_id and not exists (
      select from :schema.outcome o where o.job_id = j.id
        and :schema.is_past_retention(o.state, o.finished_at, retire_range.completed, retire_range.cancelled))
    limit max_kept + 1
  ) rest;
  if kept > max_kept then return 'kept'; end if;

  begin
    set local lock_timeout = '200ms';
    lock table :schema.job, :schema.outcome, :schema.attempt in access exclusive mode;
    set local lock_timeout = 0;
  exception when lock_not_available then
    return 'busy';
  end;

  select * into archive from :schema.id_range r where r.is_archive;
  foreach parent in array array['job', 'outcome', 'attempt'] loop
    key := case parent when 'job' then 'id' else 'job_id' end;
    if archive.first_id is null then
      execute format('create table %I.%I (like %I.%I including defaults including constraints including indexes)',
        :schema_literal, parent || '_archive', :schema_literal, parent);
    else
      execute format('alter table %I.%I detach partition %I.%I', :schema_literal, parent, :schema_literal, parent || '_archive');
    end if;
    execute format('alter table %I.%I detach partition %I.%I', :schema_literal, parent, :schema_literal, parent || '_' || oldest.first_id);
  end loop;

  -- What is kept is decided once, by the job; its outcome and attempts go with it.
  execute format('insert into %1$I.job_archive select j.* from %1$I.%2$I j where not exists (
      select from %1$I.%3$I o where o.job_id = j.id and %1$I.is_past_retention(o.state, o.finished_at, $1, $2))',
    :schema_literal, 'job_' || oldest.first_id, 'outcome_' || oldest.first_id) using retire_range.completed, retire_range.cancelled;
  foreach parent in array array['outcome', 'attempt'] loop
    execute format('insert into %1$I.%2$I select x.* from %1$I.%3$I x join %1$I.job_archive j on j.id = x.job_id',
      :schema_literal, parent || '_archive', parent || '_' || oldest.first_id);
  end loop;
  foreach parent in array array['job', 'outcome', 'attempt'] loop
    execute format('drop table %I.%I', :schema_literal, parent || '_' || oldest.first_id);
    execute format('alter table %I.%I attach partition %I.%I for values from (minvalue) to (%s)',
      :schema_literal, parent, :schema_literal, parent || '_archive', oldest.end_id);
  end loop;
  delete from :schema.id_range where is_archive;
  update :schema.id_range set is_archive = true, first_id = least(coalesce(archive.first_id, oldest.first_id), oldest.first_id)
  where first_id = oldest.first_id;
  return 'retired';
end
$function$;

-- Deletes up to `max_rows` jobs of the archive that are past their retention, and as many idempotency keys that
-- have run out. Returns how many rows went; call again while it is `max_rows` or more.
create function :schema.prune_archive(completed interval, cancelled interval, max_rows integer default 1000) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $function$
declare
  archive_end bigint;
  pruned integer := 0;
  keys integer;
begin
  select r.end_id into archive_end from :schema.id_range r where r.is_archive;
  if archive_end is not null then
    with past as (
      select o.job_id from :schema.outcome o where o.job_id < archive_end
        and :schema.is_past_retention(o.state, o.finished_at, prune_archive.completed, prune_archive.cancelled)
      order by o.job_id limit max_rows for update skip locked
    ), no_attempts as (
      delete from :schema.attempt a using past where a.job_id = past.job_id
    ), no_jobs as (
      delete from :schema.job j using past where j.id = past.job_id
    ), no_outcomes as (
      delete from :schema.outcome o using past where o.job_id = past.job_id returning 1
    )
    select count(*) into pruned from no_outcomes;
  end if;
  with gone as (
    delete from :schema.idempotency_key k where (k.tenant, k.key) in (
      select e.tenant, e.key from :schema.idempotency_key e where e.expires_at < now() order by e.expires_at limit max_rows for update skip locked)
    returning 1
  )
  select count(*) into keys from gone;
  return greatest(pruned, keys);
end
$function$;

-- compatible: adds two tables and functions; older releases go on and use none of them.
-- Takes no lock that anything waits for: every object is new.

-- One row for each sequence. Its lock is the order in which values are given: who draws holds it to the end of its
-- transaction, so that a rollback gives the value back and nobody has one that comes later.
create table :schema.sequence (
  tenant text collate "C" not null,
  name text collate "C" not null,
  id bigint generated always as identity,   -- of this creation: what was remembered before a deletion is nobody's
  current bigint not null,                  -- the value given last; before the first, `initial`
  increment bigint not null,
  max_value bigint,
  revision bigint not null default 0,       -- how often values were drawn
  keyed bigint not null default 0,          -- how often with an idempotency key
  initial bigint not null,
  created_at timestamptz not null default clock_timestamp(),
  constraint sequence_pkey primary key (tenant, name),
  constraint sequence_grows check (increment > 0),
  constraint sequence_is_within_max check (current <= max_value)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- What requests with an idempotency key were given: of each sequence the last 256, for ten minutes.
create table :schema.sequence_request (
  sequence_id bigint not null,
  place bigint not null,                    -- the sequence's `keyed` when it was drawn
  first_value bigint not null,
  count bigint not null,
  drawn_at timestamptz not null default clock_timestamp(),
  key text collate "C" not null,
  constraint sequence_request_pkey primary key (sequence_id, key)
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);
create index sequence_request_place_idx on :schema.sequence_request (sequence_id, place);
create index sequence_request_drawn_idx on :schema.sequence_request (drawn_at);

-- Functions here do without sequential scans: a session keeps the plans that it made while the tables were empty.

-- Creates a sequence. `is_new` is false if there was one of the name: then that one is given, as it is.
create function :schema.create_sequence(
  tenant text,
  name text,
  initial bigint,
  increment bigint,
  max_value bigint,
  out is_new boolean,
  out known :schema.sequence
) returns record
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $function$
begin
  -- Again if it is deleted between the two statements.
  loop
    insert into :schema.sequence as s (tenant, name, initial, current, increment, max_value)
    values (create_sequence.tenant, create_sequence.name, create_sequence.initial, create_sequence.initial,
      create_sequence.increment, create_sequence.max_value)
    on conflict on constraint sequence_pkey do nothing
    returning s.* into known;
    is_new := found;
    exit when found;
    select s.* into known from :schema.sequence s where s.tenant = create_sequence.tenant and s.name = create_sequence.name;
    exit when found;
  end loop;
end
$function$;

-- Draws `count` values that follow one another. `status`:
--   drawn         they are the caller's
--   repeated      the request of this key had drawn them before; nothing was drawn now
--   other-count   the key belongs to a request of another count; nothing was drawn
--   exhausted     they do not fit below the maximum or into 64 bits; nothing was drawn, `available` would fit
--   not-found     there is no such sequence
-- Waits for whoever has drawn and has not ended. What is drawn is on disk when the commit is answered, whatever
-- `synchronous_commit` says: a value that a crash takes back would be given twice.
create function :schema.draw_values(
  tenant text,
  name text,
  count bigint,
  idempotency_key text,
  out status text,
  out first_value bigint,
  out last_value bigint,
  out increment bigint,
  out available bigint
) returns record
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $function$
declare
  own_id bigint;
  own_place bigint;
  remembered bigint;
begin
  if current_setting('synchronous_commit') = 'off' then perform set_config('synchronous_commit', 'on', true); end if;

  if idempotency_key is not null then
    select s.id, s.increment into own_id, increment
    from :schema.sequence s where s.tenant = draw_values.tenant and s.name = draw_values.name
    for no key update;
    if found then
      select r.first_value, r.count into first_value, remembered
      from :schema.sequence_request r
      where r.sequence_id = own_id and r.key = idempotency_key
        and r.drawn_at > clock_timestamp() - interval '10 minutes';
      if found then
        status := case when remembered = draw_values.count then 'repeated' else 'other-count' end;
        last_value := first_value::numeric + increment::numeric * (remembered - 1);
        return;
      end if;
    end if;
  end if;

  -- Again if the sequence is made between the two statements. Numeric, since a product may leave 64 bits on its way
  -- to a value that does not.
  loop
    update :schema.sequence s
    set current = s.current + s.increment::numeric * draw_values.count,
        revision = s.revision + 1,
        keyed = s.keyed + (idempotency_key is not null)::integer
    where s.tenant = draw_values.tenant and s.name = draw_values.name
      and draw_values.count <= (coalesce(s.max_value, 9223372036854775807)::numeric - s.current) / s.increment
    returning s.id, s.keyed, s.increment, s.current, s.current - s.increment::numeric * (draw_values.count - 1)
      into own_id, own_place, increment, last_value, first_value;
    exit when found;
    select trunc((coalesce(s.max_value, 9223372036854775807)::numeric - s.current) / s.increment)
      into available from :schema.sequence s where s.tenant = draw_values.tenant and s.name = draw_values.name;
    if not found or available < draw_values.count then
      status := case when found then 'exhausted' else 'not-found' end;
      return;
    end if;
  end loop;
  status := 'drawn';

  if idempotency_key is not null then
    delete from :schema.sequence_request r where r.sequence_id = own_id and r.place <= own_place - 256;
    insert into :schema.sequence_request as r (sequence_id, place, first_value, count, key)
    values (own_id, own_place, first_value, draw_values.count, idempotency_key)
    -- One of the key that is too old to count.
    on conflict on constraint sequence_request_pkey do update
      set place = excluded.place, first_value = excluded.first_value, count = excluded.count, drawn_at = excluded.drawn_at;
  end if;
end
$function$;

-- The next value of a sequence, for triggers and other languages, with the rules of `app.sequences.next`: in the calling
-- transaction. Errors: HF001 `field: problem` for an argument out of range, HF011 for a sequence that does not exist,
-- HF012 for one that has no more values.
create function :schema.next_value(
  name text,
  idempotency_key text default null,
  tenant text default ''
) returns bigint
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
  drawn record;
  request_key text := nullif(btrim(idempotency_key), '');
begin
  perform :schema.check_option('name', next_value.name is not null and :schema.is_name(next_value.name, 1024),
    'must be 1 to 1024 bytes, not blank, without control characters');
  perform :schema.check_option('tenant', coalesce(next_value.tenant = '' or :schema.is_name(next_value.tenant, 255), false),
    'must be at most 255 bytes, not blank, without control characters');
  perform :schema.check_option('idempotency_key', request_key is null or :schema.is_name(request_key, 1024),
    'must be 1 to 1024 bytes, without control characters');
  drawn := :schema.draw_values(next_value.tenant, btrim(next_value.name), 1, request_key);
  case drawn.status
    when 'not-found' then
      raise exception using errcode = 'HF011', message = format('there is no sequence "%s"', next_value.name),
        detail = next_value.name, hint = 'Check the name, or create it first.';
    when 'exhausted' then
      raise exception using errcode = 'HF012', message = format('the sequence "%s" has no more values', next_value.name),
        detail = next_value.name, hint = 'Delete it and create it anew with a larger maximum, or use another.';
    when 'other-count' then
      perform :schema.check_option('idempotency_key', false, 'belongs to a request for another count of values');
    else return drawn.first_value;
  end case;
end
$function$;

-- Deletes up to `max_rows` requests that are too old to count. Returns how many went.
create function :schema.prune_sequence_requests(max_rows integer default 1000) returns integer
language sql volatile security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off as $function$
  with past as (
    select r.sequence_id, r.key from :schema.sequence_request r where r.drawn_at < now() - interval '10 minutes'
    order by r.drawn_at limit max_rows for update skip locked
  ), gone as (
    delete from :schema.sequence_request r using past p where (r.sequence_id, r.key) = (p.sequence_id, p.key) returning 1
  )
  select count(*)::integer from gone
$function$;

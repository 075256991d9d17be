-- compatible: the first migration; there is nothing older to run against it.
-- Takes no lock that anything waits for: every object is new.
--
-- `:schema` becomes the quoted schema name, `:channel` the quoted text of the notification channel.
--
-- The state of a job is the table it is in:
--   ready      may run now                        -> available
--   scheduled  may run at run_at                  -> scheduled, or retryable after a failed attempt
--   parked     waits for a worker that knows it   -> available, with a reason
--   lease      a worker holds it                  -> executing
--   outcome    has ended                          -> completed, discarded, cancelled
-- Rows are inserted and deleted, hardly ever updated, so that the work per job does not depend on
-- backlog, history, or dead rows.

-- One sequence for job ids and for places in the queue: a job that falls due later than another was
-- enqueued stands behind it.
create sequence :schema.job_seq as bigint cache 1;

-- Fencing tokens. cache 1: a token handed out later is larger, whatever connection asks.
create sequence :schema.fencing_token_seq as bigint cache 1;

create sequence :schema.worker_seq as bigint cache 1;

create type :schema.job_state as enum
  ('scheduled', 'available', 'executing', 'retryable', 'completed', 'cancelled', 'discarded');

-- How an attempt ended that did not simply succeed.
create type :schema.attempt_end as enum
  ('failed', 'timed-out', 'snoozed', 'handed-back', 'interrupted', 'parked', 'worker-lost', 'discarded', 'cancelled');

-- What a job is; nothing here changes while it moves, except queue and priority when an operator moves it.
-- Partitioned by id, so that job, attempts and outcome of an age are dropped together.
create table :schema.job (
  id bigint not null,
  enqueued_at timestamptz not null,
  run_at timestamptz,                       -- the instant asked for; null: at once
  priority smallint not null,               -- 0 to 9, lower first
  max_attempts smallint not null,
  name text collate "C" not null,
  queue text collate "C" not null,
  tenant text collate "C" not null,         -- '' when the application has none
  unique_key text collate "C",
  contract text collate "C",                -- fingerprint of the definition that enqueued it
  context json,                             -- who asked for it
  input json not null,                      -- json, not jsonb: kept digit for digit
  constraint job_pkey primary key (id)
) partition by range (id);

-- The queue itself. Appended and deleted only; no second index, so a job costs one entry.
create table :schema.ready (
  seq bigint not null                       -- place in the queue: the id, or a later number for what fell due later
    default nextval(':schema.job_seq'::regclass),
  job_id bigint not null,
  priority smallint not null,
  attempts smallint not null,               -- started so far
  crashes smallint not null,                -- of these, how many of the last ones in a row lost their worker
  care smallint not null,                   -- 0 may be buffered; 1 only into a free slot; 2 as 1, and one at a time in a process
  queue text collate "C" not null
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0,
  autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 1000000
);
create index ready_claim_idx on :schema.ready (queue, priority, seq);

create table :schema.scheduled (
  run_at timestamptz not null,
  job_id bigint not null,
  priority smallint not null,
  attempts smallint not null,
  crashes smallint not null,
  retrying boolean not null,                -- waits after a failed attempt
  queue text collate "C" not null,
  constraint scheduled_pkey primary key (job_id)
) with (
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0
);
create index scheduled_due_idx on :schema.scheduled (run_at, job_id);

-- Jobs that the worker which claimed them does not know, or whose input its contract refuses.
create table :schema.parked (
  job_id bigint not null,
  seq bigint not null,
  parked_at timestamptz not null,
  priority smallint not null,
  attempts smallint not null,
  crashes smallint not null,
  name text collate "C" not null,
  queue text collate "C" not null,
  refused_contract text collate "C",        -- the contract that refused the input; null: the name was unknown
  reason text not null,
  constraint parked_pkey primary key (job_id)
);
create index parked_name_idx on :schema.parked (name, queue, priority, seq);

-- One row for each claimed batch; its key is the fencing token of all jobs in it. An id belongs to the
-- lease until an outcome or attempt row carries the same token.
create table :schema.lease (
  token bigint not null default nextval(':schema.fencing_token_seq'::regclass),
  worker_id bigint not null,
  claimed_at timestamptz not null default clock_timestamp(),
  job_ids bigint[] not null,
  seqs bigint[] not null,
  attempts smallint[],                      -- number of the attempt that this lease is for; null: 1 for all
  crashes smallint[],                       -- null: 0 for all
  cancelled bigint[] not null default '{}', -- ids that were cancelled while they execute
  cancel_reasons text[] not null default '{}', -- of each of them, why
  constraint lease_pkey primary key (token)
) with (
  toast_tuple_target = 8160,                -- a full batch fits a page; compressing it costs more than it saves
  autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0
);
create index lease_worker_idx on :schema.lease (worker_id);

-- One row for each live worker process life; ids are never used again.
create table :schema.worker (
  id bigint not null default nextval(':schema.worker_seq'::regclass),
  heartbeat_at timestamptz not null default clock_timestamp(),
  lease_ms integer not null,
  started_at timestamptz not null default clock_timestamp(),
  name text not null,                       -- a label for people
  app text not null,
  version text not null,
  queues json not null,                     -- [{ name, concurrency }]
  jobs json not null,                       -- [{ name, contract }]
  constraint worker_pkey primary key (id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

-- A worker that is about to sleep says so here: an enqueue announces itself only to sleepers.
create table :schema.waiter (
  queue text collate "C" not null,
  worker_id bigint not null,
  constraint waiter_pkey primary key (queue, worker_id)
) with (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500);

create table :schema.outcome (
  job_id bigint not null,
  token bigint,                             -- of the attempt that ended it; null if none was executing
  finished_at timestamptz not null,
  duration_ms integer,                      -- of the last attempt, by the worker's clock
  attempts smallint not null,
  late boolean not null default false,      -- succeeded after it was told to stop
  state :schema.job_state not null,
  reason text,                              -- why it was discarded or cancelled
  result json,
  error json,                               -- of the last attempt
  constraint outcome_pkey primary key (job_id)
) partition by range (job_id);

create table :schema.attempt (
  job_id bigint not null,
  token bigint not null,
  ended_at timestamptz not null,
  worker_id bigint,
  duration_ms integer,
  attempt smallint not null,
  ended :schema.attempt_end not null,
  error json,
  constraint attempt_pkey primary key (job_id, token)
) partition by range (job_id);
-- A settle asks which jobs of its leases were settled before: one short scan, not a probe for each job.
create index attempt_token_idx on :schema.attempt (token);

-- A real row, so that an insert waits for the other transaction and no enqueue is lost.
create table :schema.unique_key (
  job_id bigint not null,
  tenant text collate "C" not null,
  name text collate "C" not null,
  key text collate "C" not null,
  constraint unique_key_pkey primary key (tenant, name, key)
);
create index unique_key_job_idx on :schema.unique_key (job_id);

-- Answers to enqueues that may be repeated; independent of the job's life.
create table :schema.idempotency_key (
  job_id bigint not null,
  expires_at timestamptz not null,
  tenant text collate "C" not null,
  key text collate "C" not null,
  status text not null,
  constraint idempotency_key_pkey primary key (tenant, key)
);
create index idempotency_key_expiry_idx on :schema.idempotency_key (expires_at);

create table :schema.queue (
  name text collate "C" not null,
  paused_at timestamptz,
  pause_reason text,
  constraint queue_pkey primary key (name)
);

-- What enqueueing by SQL needs to know of a job; kept in step by migrate and by each worker's start.
create table :schema.job_definition (
  name text collate "C" not null,
  queue text collate "C" not null,
  priority smallint not null,
  max_attempts smallint not null,
  contract text collate "C",
  updated_at timestamptz not null default clock_timestamp(),
  constraint job_definition_pkey primary key (name)
);

-- The id ranges that partitions exist for.
create table :schema.id_range (
  first_id bigint not null,
  end_id bigint not null,                   -- exclusive
  created_at timestamptz not null default clock_timestamp(),
  constraint id_range_pkey primary key (first_id)
);

-- ---------------------------------------------------------------------------------------------------
-- Partitions

-- Creates the partitions of the next `ahead` million ids. Made apart and attached: `partition of` would
-- take ACCESS EXCLUSIVE on the parent, attaching takes SHARE UPDATE EXCLUSIVE, which nobody waits for.
-- Safe to call at any time from anywhere; returns at once when there is nothing to do.
create function :schema.ensure_partitions(ahead integer default 3) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp as $function$
declare
  size constant bigint := 1000000;
  upto bigint;
  covered bigint;
  parent text;
  child text;
begin
  select last_value + ahead * size into upto from :schema.job_seq;
  select coalesce(max(end_id), 0) into covered from :schema.id_range;
  if covered >= upto then return covered; end if;

  lock table :schema.id_range in share row exclusive mode;
  select coalesce(max(end_id), 0) into covered from :schema.id_range;
  while covered < upto loop
    foreach parent in array array['job', 'outcome', 'attempt'] loop
      child := parent || '_' || covered;
      execute format('create table %I.%I (like %I.%I including defaults including constraints including indexes)',
        :schema_literal, child, :schema_literal, parent);
      execute format('alter table %I.%I add constraint bounds check (%I >= %s and %I < %s)',
        :schema_literal, child, case parent when 'job' then 'id' else 'job_id' end, covered,
        case parent when 'job' then 'id' else 'job_id' end, covered + size);
      execute format('alter table %I.%I attach partition %I.%I for values from (%s) to (%s)',
        :schema_literal, parent, :schema_literal, child, covered, covered + size);
      execute format('alter table %I.%I drop constraint bounds', :schema_literal, child);
    end loop;
    insert into :schema.id_range (first_id, end_id) values (covered, covered + size);
    covered := covered + size;
  end loop;
  return covered;
end
$function$;

-- ---------------------------------------------------------------------------------------------------
-- Enqueueing

-- Tells sleeping workers of queues that have jobs again.
create function :schema.announce(queues text[]) returns bigint
language sql volatile set search_path = pg_catalog, pg_temp as $function$
  select count(pg_notify(:channel, to_hex(hashtextextended(q, 0)))) from (select distinct q from unnest(queues) q) q
  where exists (select from :schema.waiter w where w.queue = q.q)
$function$;

-- Tells the worker that executes a cancelled job to look for it.
create function :schema.announce_cancel(worker_id bigint) returns void
language sql volatile set search_path = pg_catalog, pg_temp as $function$
  select pg_notify(:channel, 'cancel:' || worker_id)
$function$;

-- Stores jobs and announces them to sleepers. `items` is an array of
--   { n: name, q: queue, p: priority, m: max attempts, at: due in epoch ms, in: due in ms from now,
--     u: unique key, c: contract, t: tenant, x: context, i: input, id: a reserved id }
-- already checked by the caller. Gives the ids as a JSON array of strings, in the order of the items.
create function :schema.enqueue_jobs(items json, out ids text) returns text
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
begin
  if json_array_length(items) = 1 then
    ids := '["' || :schema.enqueue_one_job(items -> 0) || '"]';
    return;
  end if;

  with item as materialized (
    select coalesce(x.id, nextval(':schema.job_seq'::regclass)) as id, x.o, x.n, x.q, x.p, x.m, x.u, x.c, x.x, x.i,
      coalesce(x.t, '') as t, d.run_at, d.due, case when x.m = 1 then 1 else 0 end::smallint as care
    from rows from (json_to_recordset(items) as
        (id bigint, n text, q text, p smallint, m smallint, "at" float8, "in" float8, u text, c text, t text, x json, i json))
      with ordinality x (id, n, q, p, m, at_ms, in_ms, u, c, t, x, i, o)
    cross join lateral (
      select r.run_at, r.run_at <= clock_timestamp() is not false as due
      from (select case when x.at_ms is not null then to_timestamp(x.at_ms / 1000)
                        when x.in_ms > 0 then clock_timestamp() + x.in_ms * interval '1 millisecond' end as run_at) r
    ) d
  ), stored as (
    insert into :schema.job (id, enqueued_at, run_at, priority, max_attempts, name, queue, tenant, unique_key, contract, context, input)
    select id, statement_timestamp(), run_at, p, m, n, q, t, u, c, x, coalesce(i, 'null') from item
  ), now_ready as (
    insert into :schema.ready (seq, job_id, priority, attempts, crashes, care, queue)
    select id, id, p, 0, 0, care, q from item where due
  ), later as (
    insert into :schema.scheduled (run_at, job_id, priority, attempts, crashes, retrying, queue)
    select run_at, id, p, 0, 0, false, q from item where not due
  ), announced as (
    select count(pg_notify(:channel, to_hex(hashtextextended(q.q, 0)))) from (select distinct q from item where due) q
    where exists (select from :schema.waiter w where w.queue = q.q)
  ), announced_due as (
    select count(pg_notify(:channel, 'due')) from (select from item
      where not due and run_at < clock_timestamp() + interval '1 minute' limit 1) soon
    where exists (select from :schema.waiter)
  )
  select json_agg(id::text order by o)::text into ids from item, announced, announced_due;
end
$function$;

-- What enqueue_jobs does, for one item, in two thirds of the time: most of a large statement's is its start. Runs under
-- the search path of enqueue_jobs.
create function :schema.enqueue_one_job(item json, out id bigint) returns bigint
language plpgsql volatile as $function$
declare
  job record;
  run_at timestamptz;
begin
  select x.* into job from json_to_record(item) as x
    (id bigint, n text, q text, p smallint, m smallint, "at" float8, "in" float8, u text, c text, t text, x json, i json);
  id := coalesce(job.id, nextval(':schema.job_seq'::regclass));
  run_at := case when job."at" is not null then to_timestamp(job."at" / 1000)
                 when job."in" > 0 then clock_timestamp() + job."in" * interval '1 millisecond' end;

  insert into :schema.job (id, enqueued_at, run_at, priority, max_attempts, name, queue, tenant, unique_key, contract, context, input)
  values (id, statement_timestamp(), run_at, job.p, job.m, job.n, job.q, coalesce(job.t, ''),
    job.u, job.c, job.x, coalesce(job.i, 'null'));
  if run_at <= clock_timestamp() is not false then
    insert into :schema.ready (seq, job_id, priority, attempts, crashes, care, queue)
    values (id, id, job.p, 0, 0, case when job.m = 1 then 1 else 0 end, job.q);
    if exists (select from :schema.waiter w where w.queue = job.q) then
      perform pg_notify(:channel, to_hex(hashtextextended(job.q, 0)));
    end if;
  else
    insert into :schema.scheduled (run_at, job_id, priority, attempts, crashes, retrying, queue)
    values (run_at, id, job.p, 0, 0, false, job.q);
    if run_at < clock_timestamp() + interval '1 minute' and exists (select from :schema.waiter) then
      perform pg_notify(:channel, 'due');
    end if;
  end if;
end
$function$;

-- What enqueue_jobs does, for jobs that differ in nothing but their input: `head` is an item without `i` and `id`. To read
-- each item whole is two fifths of what enqueue_jobs takes for many. Gives the ids in the order of the inputs.
create function :schema.enqueue_alike_jobs(head json, inputs json, out ids bigint[]) returns bigint[]
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
  job record;
  due_at timestamptz;
  is_due boolean;
begin
  select x.* into job from json_to_record(head) as x
    (n text, q text, p smallint, m smallint, "at" float8, "in" float8, c text, t text, x json);
  due_at := case when job."at" is not null then to_timestamp(job."at" / 1000)
                 when job."in" > 0 then clock_timestamp() + job."in" * interval '1 millisecond' end;
  is_due := due_at <= clock_timestamp() is not false;

  with item as materialized (
    select nextval(':schema.job_seq'::regclass) as id, x.i, x.o from json_array_elements(inputs) with ordinality x (i, o)
  ), stored as (
    insert into :schema.job (id, enqueued_at, run_at, priority, max_attempts, name, queue, tenant, contract, context, input)
    select item.id, statement_timestamp(), due_at, job.p, job.m, job.n, job.q, coalesce(job.t, ''), job.c, job.x, item.i
    from item
  ), now_ready as (
    insert into :schema.ready (seq, job_id, priority, attempts, crashes, care, queue)
    select item.id, item.id, job.p, 0, 0, case when job.m = 1 then 1 else 0 end, job.q from item where is_due
  ), later as (
    insert into :schema.scheduled (run_at, job_id, priority, attempts, crashes, retrying, queue)
    select due_at, item.id, job.p, 0, 0, false, job.q from item where not is_due
  )
  select array_agg(item.id order by item.o) into ids from item;

  if is_due then
    if exists (select from :schema.waiter w where w.queue = job.q) then
      perform pg_notify(:channel, to_hex(hashtextextended(job.q, 0)));
    end if;
  elsif due_at < clock_timestamp() + interval '1 minute' and exists (select from :schema.waiter) then
    perform pg_notify(:channel, 'due');
  end if;
end
$function$;

-- As enqueue_jobs, for items of which some carry `u` (unique key) or `k` (idempotency key, with `e`, how
-- long its answer is kept, in ms). Gives [[id, status], …] in the order of the items, with status 'created'
-- or 'existing'.
--
-- Keys are taken in one order (idempotency keys, then unique keys, each sorted), so that calls with
-- overlapping keys wait for each other and never deadlock. A key that another open transaction holds is
-- waited for: if that one commits, its job is the answer; if it rolls back, ours is. `on conflict do
-- nothing` says nothing about a row committed after our snapshot, so the answer is looked up by a second
-- statement, in a loop: the job may end, and free its key, in between.
--
-- Without sequential scans: a connection keeps the plans of its statements, and those made while the tables of keys
-- were empty would read them from end to end.
create function :schema.enqueue_keyed_jobs(items json) returns text
language plpgsql volatile set search_path = pg_catalog, pg_temp set enable_seqscan = off as $function$
declare
  item record;
  ids bigint[] := array(select null::bigint from json_array_elements(items));
  statuses text[] := array(select null::text from json_array_elements(items));
  new_items json;
  found_id bigint;
  found_status text;
  first_tenant text;                        -- of the items with one idempotency key, the first: its key and place
  first_key text;
  first_place bigint;
  repeated bigint[] := '{}';                -- places of the others
  repeats bigint[] := '{}';                 -- for each, the place of the first
begin
  for item in
    select coalesce(x.t, '') as t, x.k, x.e, x.o
    from rows from (json_to_recordset(items) as (t text, k text, e float8)) with ordinality x (t, k, e, o)
    where x.k is not null order by 1, x.k, x.o
  loop
    if first_tenant = item.t and first_key = item.k then
      repeated := repeated || item.o;
      repeats := repeats || first_place;
      statuses[item.o] := 'repeated';
      continue;
    end if;
    first_tenant := item.t;
    first_key := item.k;
    first_place := item.o;
    loop
      insert into :schema.idempotency_key as held (job_id, expires_at, tenant, key, status)
      values (nextval(':schema.job_seq'::regclass), clock_timestamp() + item.e * interval '1 millisecond',
        item.t, item.k, 'created')
      on conflict (tenant, key) do update
        set job_id = excluded.job_id, expires_at = excluded.expires_at, status = 'created'
        where held.expires_at <= clock_timestamp()
      returning held.job_id into found_id;
      if found then
        ids[item.o] := found_id;
        exit;
      end if;
      select job_id, status into found_id, found_status from :schema.idempotency_key
      where tenant = item.t and key = item.k;
      if found then
        ids[item.o] := found_id;
        statuses[item.o] := found_status;
        exit;
      end if;
    end loop;
  end loop;

  for item in
    select x.* from rows from (json_to_recordset(items) as (t text, n text, u text, k text)) with ordinality x (t, n, u, k, o)
    where x.u is not null order by coalesce(x.t, ''), x.n, x.u, x.o
  loop
    continue when statuses[item.o] is not null;
    loop
      insert into :schema.unique_key (job_id, tenant, name, key)
      values (coalesce(ids[item.o], nextval(':schema.job_seq'::regclass)), coalesce(item.t, ''), item.n, item.u)
      on conflict (tenant, name, key) do nothing
      returning job_id into found_id;
      if found then
        ids[item.o] := found_id;
        exit;
      end if;
      select job_id into found_id from :schema.unique_key
      where tenant = coalesce(item.t, '') and name = item.n and key = item.u;
      if found then
        ids[item.o] := found_id;
        statuses[item.o] := 'existing';
        if item.k is not null then
          update :schema.idempotency_key set job_id = found_id, status = 'existing'
          where tenant = coalesce(item.t, '') and key = item.k;
        end if;
        exit;
      end if;
    end loop;
  end loop;

  -- What was given neither key, or won both, is new. The same key twice in one call finds its own first job.
  -- Times as numeric: a float would be written with as many digits as `extra_float_digits` says.
  select json_agg(json_build_object('id', ids[x.o], 'n', x.n, 'q', x.q, 'p', x.p, 'm', x.m, 'at', x.at_ms, 'in', x.in_ms,
      'u', x.u, 'c', x.c, 't', x.t, 'x', x.x, 'i', x.i) order by x.o)
  into new_items
  from rows from (json_to_recordset(items) as
      (n text, q text, p smallint, m smallint, "at" numeric, "in" numeric, u text, c text, t text, x json, i json))
    with ordinality x (n, q, p, m, at_ms, in_ms, u, c, t, x, i, o)
  where statuses[x.o] is null;

  if new_items is not null then
    with made as (
      select x.o, n.id from json_array_elements_text(:schema.enqueue_jobs(new_items)::json) with ordinality n (id, place)
      join (select o, row_number() over (order by o) as place from generate_subscripts(ids, 1) o where statuses[o] is null) x
        using (place)
    )
    select array_agg(coalesce(ids[o], made.id::bigint) order by o) into ids
    from generate_subscripts(ids, 1) o left join made using (o);
  end if;

  -- Only now is the answer of the first one known: it may have found its unique key taken.
  for place in 1 .. cardinality(repeated) loop
    ids[repeated[place]] := ids[repeats[place]];
    statuses[repeated[place]] := coalesce(statuses[repeats[place]], 'created');
  end loop;

  return (select json_agg(json_build_array(ids[o]::text, coalesce(statuses[o], 'created')) order by o)::text
    from generate_subscripts(ids, 1) o);
end
$function$;

-- Enqueues one job by SQL, for triggers and other languages, with the rules of `app.enqueue`: it commits or
-- rolls back with the calling transaction, takes the defaults of the job's definition, and wakes sleepers.
-- Errors: HF001 `field: problem` for an option out of range, HF002 for a job that no application has
-- registered (`holdfast migrate app.ts` registers). The input is not checked against the job's schema here;
-- the worker does that, and parks what it refuses.
create function :schema.enqueue(
  name text,
  input json default 'null',
  queue text default null,
  run_at timestamptz default null,
  delay_ms float8 default null,
  priority integer default null,
  unique_key text default null,
  idempotency_key text default null,
  max_attempts integer default null,
  tenant text default '',
  out id bigint,
  out status text
) returns record
language plpgsql volatile set search_path = pg_catalog, pg_temp as $function$
declare
  known :schema.job_definition%rowtype;
  escapes text;
  answer json;
begin
  select d.* into known from :schema.job_definition d where d.name = enqueue.name;
  if not found then
    raise exception using errcode = 'HF002', message = format('no application has registered a job named "%s"', enqueue.name),
      detail = enqueue.name,
      hint = 'Check the name, or run "holdfast migrate" with the application that defines it.';
  end if;

  perform :schema.check_option('input', enqueue.input is not null, 'is null; leave it out, or give ''null''::json');
  perform :schema.check_option('input', octet_length(enqueue.input::text) <= 1048576, 'is larger than 1048576 bytes');
  -- Without escaped backslashes, after which a "u" is only a letter.
  escapes := replace(enqueue.input::text, E'\\\\', '  ');
  if strpos(escapes, E'\\u') > 0 then
    perform :schema.check_option('input', strpos(escapes, E'\\u0000') = 0, 'holds a NUL character, which PostgreSQL cannot store');
    perform :schema.check_option('input', escapes !~ E'\\\\u[dD][89abAB]..(?!\\\\u[dD][c-fC-F])'
      and escapes !~ E'(?<!\\\\u[dD][89abAB]..)\\\\u[dD][c-fC-F]', 'has half of a surrogate pair, which is not well-formed text');
  end if;
  perform :schema.check_option('queue', enqueue.queue is null or :schema.is_name(enqueue.queue, 255),
    'must be 1 to 255 bytes, not blank, without control characters');
  perform :schema.check_option('run_at', enqueue.run_at is null
    or enqueue.run_at between to_timestamp(-210866803200) and to_timestamp(253402300799.999), 'must be from 4713 BC to the end of the year 9999');
  perform :schema.check_option('delay_ms', enqueue.delay_ms is null or enqueue.run_at is null, 'cannot be given together with run_at');
  perform :schema.check_option('delay_ms', enqueue.delay_ms is null
    or enqueue.delay_ms between 0 and 3155760000000 and enqueue.delay_ms = trunc(enqueue.delay_ms), 'must be a whole number from 0 to 3155760000000');
  perform :schema.check_option('priority', coalesce(enqueue.priority, 0) between 0 and 9, 'must be from 0 to 9');
  perform :schema.check_option('max_attempts', coalesce(enqueue.max_attempts, 1) between 1 and 1000, 'must be from 1 to 1000');
  perform :schema.check_option('tenant', enqueue.tenant = '' or (enqueue.tenant is not null and :schema.is_name(enqueue.tenant, 255)),
    'must be at most 255 bytes, not blank, without control characters');
  perform :schema.check_option('unique_key', enqueue.unique_key is null or :schema.is_name(enqueue.unique_key, 1024),
    'must be 1 to 1024 bytes, not blank, without control characters');
  perform :schema.check_option('idempotency_key', enqueue.idempotency_key is null or :schema.is_name(enqueue.idempotency_key, 1024),
    'must be 1 to 1024 bytes, not blank, without control characters');

  answer := (:schema.enqueue_keyed_jobs(json_build_array(json_build_object(
    'n', enqueue.name, 'q', coalesce(enqueue.queue, known.queue), 'p', coalesce(enqueue.priority, known.priority),
    'm', coalesce(enqueue.max_attempts, known.max_attempts), 'at', extract(epoch from enqueue.run_at) * 1000, 'in', enqueue.delay_ms::numeric,
    'u', enqueue.unique_key, 'k', enqueue.idempotency_key, 'e', 86400000, 'c', known.contract, 't', enqueue.tenant,
    'i', enqueue.input)))::json) -> 0;
  id := (answer ->> 0)::bigint;
  status := answer ->> 1;

  -- Whoever enqueues by SQL alone must not run out of partitions either.
  if id % 1024 = 0 then perform :schema.ensure_partitions(); end if;
end
$function$;

-- The rules of `base/check.ts` for names and keys. The characters are spelled out: classes such as [[:cntrl:]]
-- depend on the locale, and a backslash in a plain literal on standard_conforming_strings.
create function :schema.is_name(value text, max_bytes integer) returns boolean
language sql immutable set search_path = pg_catalog, pg_temp as $function$
  select octet_length(value) <= max_bytes
    and value !~ E'[\\u0001-\\u001f\\u007f-\\u009f\\u2028\\u2029]'
    and value ~ E'[^ \\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000\\ufeff]'
$function$;

create function :schema.check_option(field text, is_good boolean, problem text) returns void
language plpgsql immutable set search_path = pg_catalog, pg_temp as $function$
begin
  if not is_good then
    raise exception using errcode = 'HF001', message = format('%s: %s', field, problem);
  end if;
end
$function$;

-- ---------------------------------------------------------------------------------------------------
-- For people: one row per job, with its state. A read of many jobs, not for the hot path.
create view :schema.jobs as
  select job.id, job.name, job.queue, job.tenant, place.state, place.attempts, job.max_attempts, job.priority,
    job.unique_key, job.enqueued_at, coalesce(place.run_at, job.run_at) as run_at, place.finished_at, place.reason,
    place.worker_id, place.token as fencing_token, job.input, place.result, place.error
  from :schema.job join (
    select job_id, 'available'::text as state, attempts, null::timestamptz as run_at, null::timestamptz as finished_at,
      null::text as reason, null::bigint as worker_id, null::bigint as token, null::json as result, null::json as error
    from :schema.ready
    union all
    select job_id, case when retrying then 'retryable' else 'scheduled' end, attempts, run_at, null, null, null, null, null, null
    from :schema.scheduled
    union all
    select job_id, 'available', attempts, null, null, reason, null, null, null, null from :schema.parked
    union all
    select held.job_id, 'executing', coalesce(held.attempt, 1::smallint), null, null,
      case when held.job_id = any (lease.cancelled) then 'cancel requested' end, lease.worker_id, lease.token, null, null
    from :schema.lease cross join lateral unnest(lease.job_ids, lease.attempts) held (job_id, attempt)
    where not exists (select from :schema.attempt a where a.job_id = held.job_id and a.token = lease.token)
      and not exists (select from :schema.outcome o where o.job_id = held.job_id)
    union all
    select job_id, state::text, attempts, null, finished_at, reason, null, token, result, error from :schema.outcome
  ) place on place.job_id = job.id;

select :schema.ensure_partitions();

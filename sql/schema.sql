-- The whole schema, made from sql/migrations by scripts/dump-schema.mjs. Do not edit.

create schema holdfast;

create sequence holdfast.audit_id_seq as bigint start 1 increment 1 cache 1;

create sequence holdfast.ephemeral_epoch_seq as bigint start 0 increment 1 cache 1;

create sequence holdfast.ephemeral_key_place_seq as bigint start 1 increment 1 cache 1;

create sequence holdfast.fencing_token_seq as bigint start 1 increment 1 cache 1;

create sequence holdfast.job_seq as bigint start 1 increment 1 cache 1;

create sequence holdfast.key_hold_id_seq as bigint start 1 increment 1 cache 1;

create sequence holdfast.key_place_seq as bigint start 1 increment 1 cache 1;

create sequence holdfast.worker_seq as bigint start 1 increment 1 cache 1;

create type holdfast.attempt_end as enum ('failed', 'timed-out', 'snoozed', 'handed-back', 'interrupted', 'parked', 'worker-lost', 'discarded', 'cancelled');

create type holdfast.effect_state as enum ('intended', 'uncertain', 'open', 'happened');

create type holdfast.job_state as enum ('scheduled', 'available', 'executing', 'retryable', 'completed', 'cancelled', 'discarded');

create type holdfast.key_change_kind as enum ('set', 'deleted', 'extended', 'expired');

create table holdfast.attempt (
  job_id bigint not null,
  token bigint not null,
  ended_at timestamp with time zone not null,
  worker_id bigint,
  duration_ms integer,
  attempt smallint not null,
  ended holdfast.attempt_end not null,
  error json,
  constraint attempt_pkey PRIMARY KEY (job_id, token)
) partition by RANGE (job_id);

create table holdfast.audit (
  id bigint not null,
  at timestamp with time zone not null default clock_timestamp(),
  actor text not null,
  action text not null,
  subject text not null,
  note text,
  constraint audit_pkey PRIMARY KEY (id)
);

create table holdfast.checkpoint (
  job_id bigint not null,
  token bigint not null,
  updated_at timestamp with time zone not null default clock_timestamp(),
  value json,
  progress_at timestamp with time zone, -- when how far it has come was told last
  fraction double precision,
  note text,
  constraint checkpoint_pkey PRIMARY KEY (job_id)
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000, fillfactor=70);

create table holdfast.effect (
  tenant text collate "C" not null,
  name text collate "C" not null,
  key text collate "C" not null,
  state holdfast.effect_state not null,
  call uuid not null, -- the newest call: what it records is refused once another has taken over
  calls integer not null, -- how often the outside was called, or may have been
  doubts integer not null default 0, -- of the calls before the newest, how many ended in doubt
  job_id bigint, -- of the newest call; null outside jobs
  token bigint,
  held_until timestamp with time zone, -- outside jobs: how long the call counts as under way
  intended_at timestamp with time zone not null default clock_timestamp(),
  ended_at timestamp with time zone,
  result json,
  error json, -- of the newest call, if it threw
  constraint effect_pkey PRIMARY KEY (tenant, name, key)
);

create table holdfast.effect_question (
  job_id bigint not null,
  asked_at timestamp with time zone not null default clock_timestamp(),
  tenant text collate "C" not null,
  name text collate "C" not null,
  key text collate "C" not null,
  constraint effect_question_pkey PRIMARY KEY (job_id)
);

create table holdfast.ephemeral_key_change (
  place bigint not null,
  revision bigint not null,
  xid xid8 not null,
  changed_at timestamp with time zone not null,
  modified_at timestamp with time zone not null,
  expires_at timestamp with time zone,
  kind holdfast.key_change_kind not null,
  norev boolean not null,
  tenant text collate "C" not null,
  key text collate "C" not null,
  value bytea,
  constraint ephemeral_key_change_pkey PRIMARY KEY (place)
);

create table holdfast.ephemeral_key_log (
  only_row boolean not null default true,
  epoch bigint not null,
  trimmed_to bigint not null,
  constraint ephemeral_key_log_pkey PRIMARY KEY (only_row),
  constraint key_log_is_one_row CHECK (only_row)
);

create table holdfast.ephemeral_key_value (
  revision bigint not null,
  xid xid8 not null,
  modified_at timestamp with time zone not null,
  expires_at timestamp with time zone,
  deleted boolean not null,
  norev boolean not null,
  tenant text collate "C" not null,
  key text collate "C" not null,
  value bytea not null,
  constraint ephemeral_key_value_pkey PRIMARY KEY (tenant, key)
);

create table holdfast.id_range (
  first_id bigint not null,
  end_id bigint not null, -- exclusive
  created_at timestamp with time zone not null default clock_timestamp(),
  used_since timestamp with time zone,
  is_archive boolean not null default false,
  constraint id_range_pkey PRIMARY KEY (first_id)
);

create table holdfast.idempotency_key (
  job_id bigint not null,
  expires_at timestamp with time zone not null,
  tenant text collate "C" not null,
  key text collate "C" not null,
  status text not null,
  constraint idempotency_key_pkey PRIMARY KEY (tenant, key)
);

create table holdfast.job (
  id bigint not null,
  enqueued_at timestamp with time zone not null,
  run_at timestamp with time zone, -- the instant asked for; null: at once
  priority smallint not null, -- 0 to 9, lower first
  max_attempts smallint not null,
  name text collate "C" not null,
  queue text collate "C" not null,
  tenant text collate "C" not null, -- '' when the application has none
  unique_key text collate "C",
  contract text collate "C", -- fingerprint of the definition that enqueued it
  context json, -- who asked for it
  input json not null, -- json, not jsonb: kept digit for digit
  has_checkpoint boolean,
  constraint job_pkey PRIMARY KEY (id)
) partition by RANGE (id);

create table holdfast.job_definition (
  name text collate "C" not null,
  queue text collate "C" not null,
  priority smallint not null,
  max_attempts smallint not null,
  contract text collate "C",
  updated_at timestamp with time zone not null default clock_timestamp(),
  constraint job_definition_pkey PRIMARY KEY (name)
);

create table holdfast.key_change (
  place bigint not null,
  revision bigint not null,
  xid xid8 not null,
  changed_at timestamp with time zone not null,
  modified_at timestamp with time zone not null, -- when the value was set
  expires_at timestamp with time zone,
  kind holdfast.key_change_kind not null,
  norev boolean not null, -- for watchers only: no part of the history
  tenant text collate "C" not null,
  key text collate "C" not null,
  value bytea, -- null where the key is absent from then on
  constraint key_change_pkey PRIMARY KEY (place)
);

create table holdfast.key_hold (
  id bigint not null,
  held_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  ephemeral boolean not null,
  is_exact boolean not null, -- by the snapshot; otherwise by the time
  tenant text collate "C" not null,
  holder text collate "C" not null,
  held pg_snapshot not null,
  constraint key_hold_pkey PRIMARY KEY (id)
);

create table holdfast.key_log (
  only_row boolean not null default true,
  epoch bigint not null,
  trimmed_to bigint not null,
  constraint key_log_pkey PRIMARY KEY (only_row),
  constraint key_log_is_one_row CHECK (only_row)
);

create table holdfast.key_value (
  revision bigint not null, -- -1: never written; a script holds the row
  xid xid8 not null, -- the transaction that wrote it last
  modified_at timestamp with time zone not null, -- never falls
  expires_at timestamp with time zone, -- from then on the key is absent, swept or not
  deleted boolean not null,
  norev boolean not null, -- the value is not in the history
  tenant text collate "C" not null,
  key text collate "C" not null,
  value bytea not null,
  constraint key_value_pkey PRIMARY KEY (tenant, key)
) with (fillfactor=80);

create table holdfast.key_watcher (
  id uuid not null,
  expires_at timestamp with time zone not null,
  ephemeral boolean not null,
  tenant text collate "C" not null,
  prefix text collate "C" not null,
  constraint key_watcher_pkey PRIMARY KEY (id)
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=100, fillfactor=50);

create table holdfast.lease (
  token bigint not null default nextval('holdfast.fencing_token_seq'::regclass),
  worker_id bigint not null,
  claimed_at timestamp with time zone not null default clock_timestamp(),
  job_ids bigint[] not null,
  seqs bigint[] not null,
  attempts smallint[], -- number of the attempt that this lease is for; null: 1 for all
  crashes smallint[], -- null: 0 for all
  cancelled bigint[] not null default '{}'::bigint[], -- ids that were cancelled while they execute
  cancel_reasons text[] not null default '{}'::text[], -- of each of them, why
  constraint lease_pkey PRIMARY KEY (token)
) with (autovacuum_vacuum_cost_delay=0, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000, toast_tuple_target=8160);

create table holdfast.migration (
  version integer not null,
  name text not null,
  breaking boolean not null,
  applied_at timestamp with time zone not null default clock_timestamp(),
  constraint migration_pkey PRIMARY KEY (version)
);

create table holdfast.outcome (
  job_id bigint not null,
  token bigint, -- of the attempt that ended it; null if none was executing
  finished_at timestamp with time zone not null,
  duration_ms integer, -- of the last attempt, by the worker's clock
  attempts smallint not null,
  late boolean not null default false, -- succeeded after it was told to stop
  state holdfast.job_state not null,
  reason text, -- why it was discarded or cancelled
  result json,
  error json, -- of the last attempt
  constraint outcome_pkey PRIMARY KEY (job_id)
) partition by RANGE (job_id);

create table holdfast.parked (
  job_id bigint not null,
  seq bigint not null,
  parked_at timestamp with time zone not null,
  priority smallint not null,
  attempts smallint not null,
  crashes smallint not null,
  name text collate "C" not null,
  queue text collate "C" not null,
  refused_contract text collate "C", -- the contract that refused the input; null: the name was unknown
  reason text not null,
  constraint parked_pkey PRIMARY KEY (job_id)
);

create table holdfast.queue (
  name text collate "C" not null,
  paused_at timestamp with time zone,
  pause_reason text,
  constraint queue_pkey PRIMARY KEY (name)
);

create table holdfast.ready (
  seq bigint not null default nextval('holdfast.job_seq'::regclass), -- place in the queue: the id, or a later number for what fell due later
  job_id bigint not null,
  priority smallint not null,
  attempts smallint not null, -- started so far
  crashes smallint not null, -- of these, how many of the last ones in a row lost their worker
  care smallint not null, -- 0 may be buffered; 1 only into a free slot; 2 as 1, and one at a time in a process
  queue text collate "C" not null
) with (autovacuum_analyze_scale_factor=0, autovacuum_analyze_threshold=1000000, autovacuum_vacuum_cost_delay=0, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=20000);

create table holdfast.scheduled (
  run_at timestamp with time zone not null,
  job_id bigint not null,
  priority smallint not null,
  attempts smallint not null,
  crashes smallint not null,
  retrying boolean not null, -- waits after a failed attempt
  queue text collate "C" not null,
  constraint scheduled_pkey PRIMARY KEY (job_id)
) with (autovacuum_vacuum_cost_delay=0, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=20000);

create table holdfast.unique_key (
  job_id bigint not null,
  tenant text collate "C" not null,
  name text collate "C" not null,
  key text collate "C" not null,
  constraint unique_key_pkey PRIMARY KEY (tenant, name, key)
);

create table holdfast.waiter (
  queue text collate "C" not null,
  worker_id bigint not null,
  constraint waiter_pkey PRIMARY KEY (queue, worker_id)
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500, fillfactor=50);

create table holdfast.worker (
  id bigint not null default nextval('holdfast.worker_seq'::regclass),
  heartbeat_at timestamp with time zone not null default clock_timestamp(),
  lease_ms integer not null,
  started_at timestamp with time zone not null default clock_timestamp(),
  name text not null, -- a label for people
  app text not null,
  version text not null,
  queues json not null, -- [{ name, concurrency }]
  jobs json not null, -- [{ name, contract }]
  constraint worker_pkey PRIMARY KEY (id)
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=500, fillfactor=50);

create index attempt_token_idx ON holdfast.attempt USING btree (token);

create index audit_subject_idx ON holdfast.audit USING btree ("left"(subject, 255), id);

create index effect_doubtful_idx ON holdfast.effect USING btree (intended_at, tenant, name, key) WHERE (state = ANY (ARRAY['intended'::holdfast.effect_state, 'uncertain'::holdfast.effect_state]));

create index effect_ended_idx ON holdfast.effect USING btree (ended_at) WHERE (state = ANY (ARRAY['happened'::holdfast.effect_state, 'open'::holdfast.effect_state]));

create index effect_job_idx ON holdfast.effect USING btree (job_id);

create index effect_question_effect_idx ON holdfast.effect_question USING btree (tenant, name, key);

create index ephemeral_key_change_tenant_key_revision_place_idx ON holdfast.ephemeral_key_change USING btree (tenant, key, revision, place) WHERE (NOT norev);

create index ephemeral_key_value_expires_at_idx ON holdfast.ephemeral_key_value USING btree (expires_at) WHERE ((NOT deleted) AND (expires_at IS NOT NULL));

create index idempotency_key_expiry_idx ON holdfast.idempotency_key USING btree (expires_at);

create index key_change_history_idx ON holdfast.key_change USING btree (tenant, key, revision, place) WHERE (NOT norev);

create index key_hold_holder_idx ON holdfast.key_hold USING btree (tenant, holder);

create index key_value_expires_idx ON holdfast.key_value USING btree (expires_at) WHERE ((NOT deleted) AND (expires_at IS NOT NULL));

create index lease_worker_idx ON holdfast.lease USING btree (worker_id);

create index parked_name_idx ON holdfast.parked USING btree (name, queue, priority, seq);

create index ready_claim_idx ON holdfast.ready USING btree (queue, priority, seq);

create index scheduled_due_idx ON holdfast.scheduled USING btree (run_at, job_id);

create index unique_key_job_idx ON holdfast.unique_key USING btree (job_id);

create or replace function holdfast.announce(queues text[])
 RETURNS bigint
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select count(pg_notify('holdfast_d1580d2df7f24b6f5e2a861eba291875', to_hex(hashtextextended(q, 0)))) from (select distinct q from unnest(queues) q) q
  where exists (select from "holdfast".waiter w where w.queue = q.q)
$function$;

create or replace function holdfast.announce_cancel(worker_id bigint)
 RETURNS void
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select pg_notify('holdfast_d1580d2df7f24b6f5e2a861eba291875', 'cancel:' || worker_id)
$function$;

create or replace function holdfast.begin_ephemeral_key_change(at timestamp with time zone)
 RETURNS void
 LANGUAGE sql
AS $function$
  select pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtext('holdfast ephemeral keys ' || 'holdfast'),
    pg_catalog.floor(extract(epoch from at) / 60)::integer)
$function$;

create or replace function holdfast.begin_key_change(at timestamp with time zone)
 RETURNS void
 LANGUAGE sql
AS $function$
  select pg_catalog.pg_advisory_xact_lock_shared(pg_catalog.hashtext('holdfast keys ' || 'holdfast'),
    pg_catalog.floor(extract(epoch from at) / 60)::integer)
$function$;

create or replace function holdfast.check_key(key text)
 RETURNS void
 LANGUAGE plpgsql
 IMMUTABLE
AS $function$
begin
  if key is null or key = '' or pg_catalog.octet_length(key) > 1024 then
    raise exception using errcode = 'HF001', message = 'key: must have 1 to 1024 bytes';
  end if;
  if pg_catalog.starts_with(key, '__holdfast:') then
    raise exception using errcode = 'HF001', message = 'key: must not start with "__holdfast:", which is reserved';
  end if;
end
$function$;

create or replace function holdfast.check_option(field text, is_good boolean, problem text)
 RETURNS void
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if not is_good then
    raise exception using errcode = 'HF001', message = format('%s: %s', field, problem);
  end if;
end
$function$;

create or replace function holdfast.enqueue(name text, input json DEFAULT 'null'::json, queue text DEFAULT NULL::text, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, delay_ms double precision DEFAULT NULL::double precision, priority integer DEFAULT NULL::integer, unique_key text DEFAULT NULL::text, idempotency_key text DEFAULT NULL::text, max_attempts integer DEFAULT NULL::integer, tenant text DEFAULT ''::text, OUT id bigint, OUT status text)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  known "holdfast".job_definition%rowtype;
  escapes text;
  answer json;
begin
  select d.* into known from "holdfast".job_definition d where d.name = enqueue.name;
  if not found then
    raise exception using errcode = 'HF002', message = format('no application has registered a job named "%s"', enqueue.name),
      detail = enqueue.name,
      hint = 'Check the name, or run "holdfast migrate" with the application that defines it.';
  end if;

  perform "holdfast".check_option('input', enqueue.input is not null, 'is null; leave it out, or give ''null''::json');
  perform "holdfast".check_option('input', octet_length(enqueue.input::text) <= 1048576, 'is larger than 1048576 bytes');
  -- Without escaped backslashes, after which a "u" is only a letter.
  escapes := replace(enqueue.input::text, E'\\\\', '  ');
  if strpos(escapes, E'\\u') > 0 then
    perform "holdfast".check_option('input', strpos(escapes, E'\\u0000') = 0, 'holds a NUL character, which PostgreSQL cannot store');
    perform "holdfast".check_option('input', escapes !~ E'\\\\u[dD][89abAB]..(?!\\\\u[dD][c-fC-F])'
      and escapes !~ E'(?<!\\\\u[dD][89abAB]..)\\\\u[dD][c-fC-F]', 'has half of a surrogate pair, which is not well-formed text');
  end if;
  perform "holdfast".check_option('queue', enqueue.queue is null or "holdfast".is_name(enqueue.queue, 255),
    'must be 1 to 255 bytes, not blank, without control characters');
  perform "holdfast".check_option('run_at', enqueue.run_at is null
    or enqueue.run_at between to_timestamp(-210866803200) and to_timestamp(253402300799.999), 'must be from 4713 BC to the end of the year 9999');
  perform "holdfast".check_option('delay_ms', enqueue.delay_ms is null or enqueue.run_at is null, 'cannot be given together with run_at');
  perform "holdfast".check_option('delay_ms', enqueue.delay_ms is null
    or enqueue.delay_ms between 0 and 3155760000000 and enqueue.delay_ms = trunc(enqueue.delay_ms), 'must be a whole number from 0 to 3155760000000');
  perform "holdfast".check_option('priority', coalesce(enqueue.priority, 0) between 0 and 9, 'must be from 0 to 9');
  perform "holdfast".check_option('max_attempts', coalesce(enqueue.max_attempts, 1) between 1 and 1000, 'must be from 1 to 1000');
  perform "holdfast".check_option('tenant', enqueue.tenant = '' or (enqueue.tenant is not null and "holdfast".is_name(enqueue.tenant, 255)),
    'must be at most 255 bytes, not blank, without control characters');
  perform "holdfast".check_option('unique_key', enqueue.unique_key is null or "holdfast".is_name(enqueue.unique_key, 1024),
    'must be 1 to 1024 bytes, not blank, without control characters');
  perform "holdfast".check_option('idempotency_key', enqueue.idempotency_key is null or "holdfast".is_name(enqueue.idempotency_key, 1024),
    'must be 1 to 1024 bytes, not blank, without control characters');

  answer := ("holdfast".enqueue_keyed_jobs(json_build_array(json_build_object(
    'n', enqueue.name, 'q', coalesce(enqueue.queue, known.queue), 'p', coalesce(enqueue.priority, known.priority),
    'm', coalesce(enqueue.max_attempts, known.max_attempts), 'at', extract(epoch from enqueue.run_at) * 1000, 'in', enqueue.delay_ms::numeric,
    'u', enqueue.unique_key, 'k', enqueue.idempotency_key, 'e', 86400000, 'c', known.contract, 't', enqueue.tenant,
    'i', enqueue.input)))::json) -> 0;
  id := (answer ->> 0)::bigint;
  status := answer ->> 1;

  -- Whoever enqueues by SQL alone must not run out of partitions either.
  if id % 1024 = 0 then perform "holdfast".ensure_partitions(); end if;
end
$function$;

create or replace function holdfast.enqueue_alike_jobs(head json, inputs json, OUT ids bigint[])
 RETURNS bigint[]
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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
    select nextval('"holdfast"."job_seq"'::regclass) as id, x.i, x.o from json_array_elements(inputs) with ordinality x (i, o)
  ), stored as (
    insert into "holdfast".job (id, enqueued_at, run_at, priority, max_attempts, name, queue, tenant, contract, context, input)
    select item.id, statement_timestamp(), due_at, job.p, job.m, job.n, job.q, coalesce(job.t, ''), job.c, job.x, item.i
    from item
  ), now_ready as (
    insert into "holdfast".ready (seq, job_id, priority, attempts, crashes, care, queue)
    select item.id, item.id, job.p, 0, 0, case when job.m = 1 then 1 else 0 end, job.q from item where is_due
  ), later as (
    insert into "holdfast".scheduled (run_at, job_id, priority, attempts, crashes, retrying, queue)
    select due_at, item.id, job.p, 0, 0, false, job.q from item where not is_due
  )
  select array_agg(item.id order by item.o) into ids from item;

  if is_due then
    if exists (select from "holdfast".waiter w where w.queue = job.q) then
      perform pg_notify('holdfast_d1580d2df7f24b6f5e2a861eba291875', to_hex(hashtextextended(job.q, 0)));
    end if;
  elsif due_at < clock_timestamp() + interval '1 minute' and exists (select from "holdfast".waiter) then
    perform pg_notify('holdfast_d1580d2df7f24b6f5e2a861eba291875', 'due');
  end if;
end
$function$;

create or replace function holdfast.enqueue_jobs(items json, OUT ids text)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if json_array_length(items) = 1 then
    ids := '["' || "holdfast".enqueue_one_job(items -> 0) || '"]';
    return;
  end if;

  with item as materialized (
    select coalesce(x.id, nextval('"holdfast"."job_seq"'::regclass)) as id, x.o, x.n, x.q, x.p, x.m, x.u, x.c, x.x, x.i,
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
    insert into "holdfast".job (id, enqueued_at, run_at, priority, max_attempts, name, queue, tenant, unique_key, contract, context, input)
    select id, statement_timestamp(), run_at, p, m, n, q, t, u, c, x, coalesce(i, 'null') from item
  ), now_ready as (
    insert into "holdfast".ready (seq, job_id, priority, attempts, crashes, care, queue)
    select id, id, p, 0, 0, care, q from item where due
  ), later as (
    insert into "holdfast".scheduled (run_at, job_id, priority, attempts, crashes, retrying, queue)
    select run_at, id, p, 0, 0, false, q from item where not due
  ), announced as (
    select count(pg_notify('holdfast_d1580d2df7f24b6f5e2a861eba291875', to_hex(hashtextextended(q.q, 0)))) from (select distinct q from item where due) q
    where exists (select from "holdfast".waiter w where w.queue = q.q)
  ), announced_due as (
    select count(pg_notify('holdfast_d1580d2df7f24b6f5e2a861eba291875', 'due')) from (select from item
      where not due and run_at < clock_timestamp() + interval '1 minute' limit 1) soon
    where exists (select from "holdfast".waiter)
  )
  select json_agg(id::text order by o)::text into ids from item, announced, announced_due;
end
$function$;

create or replace function holdfast.enqueue_keyed_jobs(items json)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
AS $function$
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
      insert into "holdfast".idempotency_key as held (job_id, expires_at, tenant, key, status)
      values (nextval('"holdfast"."job_seq"'::regclass), clock_timestamp() + item.e * interval '1 millisecond',
        item.t, item.k, 'created')
      on conflict (tenant, key) do update
        set job_id = excluded.job_id, expires_at = excluded.expires_at, status = 'created'
        where held.expires_at <= clock_timestamp()
      returning held.job_id into found_id;
      if found then
        ids[item.o] := found_id;
        exit;
      end if;
      select job_id, status into found_id, found_status from "holdfast".idempotency_key
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
      insert into "holdfast".unique_key (job_id, tenant, name, key)
      values (coalesce(ids[item.o], nextval('"holdfast"."job_seq"'::regclass)), coalesce(item.t, ''), item.n, item.u)
      on conflict (tenant, name, key) do nothing
      returning job_id into found_id;
      if found then
        ids[item.o] := found_id;
        exit;
      end if;
      select job_id into found_id from "holdfast".unique_key
      where tenant = coalesce(item.t, '') and name = item.n and key = item.u;
      if found then
        ids[item.o] := found_id;
        statuses[item.o] := 'existing';
        if item.k is not null then
          update "holdfast".idempotency_key set job_id = found_id, status = 'existing'
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
      select x.o, n.id from json_array_elements_text("holdfast".enqueue_jobs(new_items)::json) with ordinality n (id, place)
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

create or replace function holdfast.enqueue_one_job(item json, OUT id bigint)
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
declare
  job record;
  run_at timestamptz;
begin
  select x.* into job from json_to_record(item) as x
    (id bigint, n text, q text, p smallint, m smallint, "at" float8, "in" float8, u text, c text, t text, x json, i json);
  id := coalesce(job.id, nextval('"holdfast"."job_seq"'::regclass));
  run_at := case when job."at" is not null then to_timestamp(job."at" / 1000)
                 when job."in" > 0 then clock_timestamp() + job."in" * interval '1 millisecond' end;

  insert into "holdfast".job (id, enqueued_at, run_at, priority, max_attempts, name, queue, tenant, unique_key, contract, context, input)
  values (id, statement_timestamp(), run_at, job.p, job.m, job.n, job.q, coalesce(job.t, ''),
    job.u, job.c, job.x, coalesce(job.i, 'null'));
  if run_at <= clock_timestamp() is not false then
    insert into "holdfast".ready (seq, job_id, priority, attempts, crashes, care, queue)
    values (id, id, job.p, 0, 0, case when job.m = 1 then 1 else 0 end, job.q);
    if exists (select from "holdfast".waiter w where w.queue = job.q) then
      perform pg_notify('holdfast_d1580d2df7f24b6f5e2a861eba291875', to_hex(hashtextextended(job.q, 0)));
    end if;
  else
    insert into "holdfast".scheduled (run_at, job_id, priority, attempts, crashes, retrying, queue)
    values (run_at, id, job.p, 0, 0, false, job.q);
    if run_at < clock_timestamp() + interval '1 minute' and exists (select from "holdfast".waiter) then
      perform pg_notify('holdfast_d1580d2df7f24b6f5e2a861eba291875', 'due');
    end if;
  end if;
end
$function$;

create or replace function holdfast.ensure_partitions(ahead integer DEFAULT 3)
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  size constant bigint := 1000000;
  upto bigint;
  covered bigint;
  parent text;
  child text;
begin
  select last_value + ahead * size into upto from "holdfast".job_seq;
  select coalesce(max(end_id), 0) into covered from "holdfast".id_range;
  if covered >= upto then return covered; end if;

  lock table "holdfast".id_range in share row exclusive mode;
  select coalesce(max(end_id), 0) into covered from "holdfast".id_range;
  while covered < upto loop
    foreach parent in array array['job', 'outcome', 'attempt'] loop
      child := parent || '_' || covered;
      execute format('create table %I.%I (like %I.%I including defaults including constraints including indexes)',
        'holdfast', child, 'holdfast', parent);
      execute format('alter table %I.%I add constraint bounds check (%I >= %s and %I < %s)',
        'holdfast', child, case parent when 'job' then 'id' else 'job_id' end, covered,
        case parent when 'job' then 'id' else 'job_id' end, covered + size);
      execute format('alter table %I.%I attach partition %I.%I for values from (%s) to (%s)',
        'holdfast', parent, 'holdfast', child, covered, covered + size);
      execute format('alter table %I.%I drop constraint bounds', 'holdfast', child);
    end loop;
    insert into "holdfast".id_range (first_id, end_id) values (covered, covered + size);
    covered := covered + size;
  end loop;
  return covered;
end
$function$;

create or replace function holdfast.enter_key_buckets(tenant text, ephemeral boolean, key text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  part text;
  bucket text;
begin
  perform pg_advisory_xact_lock_shared("holdfast".key_bucket_lock(tenant, ephemeral, null));
  foreach part in array trim_array(string_to_array(key, '/'), 1) loop
    bucket := concat_ws('/', bucket, part);
    perform pg_advisory_xact_lock_shared("holdfast".key_bucket_lock(tenant, ephemeral, bucket));
  end loop;
end
$function$;

create or replace function holdfast.ephemeral_epoch(OUT epoch bigint)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  select l.epoch into epoch from "holdfast".ephemeral_key_log l;
  if found then return; end if;
  lock table "holdfast".ephemeral_key_log in share row exclusive mode;
  select l.epoch into epoch from "holdfast".ephemeral_key_log l;
  if found then return; end if;
  perform set_config('synchronous_commit', 'on', true)
    where current_setting('synchronous_commit') in ('off', 'local');
  epoch := nextval('"holdfast"."ephemeral_epoch_seq"');
  if epoch > 0 then perform setval('"holdfast"."ephemeral_key_place_seq"', epoch << 40); end if;
  insert into "holdfast".ephemeral_key_log (epoch, trimmed_to) values (epoch, epoch << 40);
end
$function$;

create or replace function holdfast.is_name(value text, max_bytes integer)
 RETURNS boolean
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select octet_length(value) <= max_bytes
    and value !~ E'[\\u0001-\\u001f\\u007f-\\u009f\\u2028\\u2029]'
    and value ~ E'[^ \\u00a0\\u1680\\u2000-\\u200a\\u202f\\u205f\\u3000\\ufeff]'
$function$;

create or replace function holdfast.is_past_retention(state holdfast.job_state, finished_at timestamp with time zone, completed interval, cancelled interval)
 RETURNS boolean
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select case state::text when 'completed' then finished_at < now() - completed
    when 'cancelled' then finished_at < now() - cancelled else false end
$function$;

create or replace function holdfast.key_bucket(tenant text, ephemeral boolean, bucket text, as_of_ms bigint)
 RETURNS TABLE(key text, value bytea, revision bigint, expires_at timestamp with time zone, modified_at timestamp with time zone)
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select * from "holdfast".key_range(tenant, ephemeral, bucket || '/', false, as_of_ms)
$function$;

create or replace function holdfast.key_bucket_lock(tenant text, ephemeral boolean, bucket text)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select hashtextextended(concat_ws(' ', 'holdfast', 'holdfast', ephemeral, length(tenant), tenant, '/' || bucket), 0)
$function$;

create or replace function holdfast.key_delete(tenant text, ephemeral boolean, key text, if_value bytea, if_revision bigint, OUT done boolean, OUT revision bigint)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  kv record;
  at timestamptz;
  heard boolean;
begin
  if (octet_length(key) between 1 and 1024 and not starts_with(key, '__holdfast:')) is not true then perform "holdfast".check_key(key); end if;
  done := false;
  if ephemeral then
  select k.revision, k.xid, k.modified_at, k.expires_at, k.deleted, k.norev, k.value into kv
  from "holdfast".ephemeral_key_value k where k.tenant = key_delete.tenant and k.key = key_delete.key for no key update;
  at := clock_timestamp();
  revision := coalesce(kv.revision, -1);
  if not found or kv.deleted or kv.expires_at <= at or if_revision <> kv.revision or if_value <> kv.value then return; end if;
  revision := kv.revision + 1;
  if kv.xid = pg_current_xact_id() and not kv.norev then
    update "holdfast".ephemeral_key_change c set norev = true
    where c.tenant = key_delete.tenant and c.key = key_delete.key and c.revision = kv.revision and c.xid = kv.xid and not c.norev;
  end if;
  update "holdfast".ephemeral_key_value k set revision = key_delete.revision, xid = pg_current_xact_id(), modified_at = greatest(at, kv.modified_at),
    expires_at = null, deleted = true, norev = false, value = ''
  where k.tenant = key_delete.tenant and k.key = key_delete.key;
  perform "holdfast".begin_ephemeral_key_change(at);
  insert into "holdfast".ephemeral_key_change (place, revision, xid, changed_at, modified_at, kind, norev, tenant, key)
  values (nextval('"holdfast".ephemeral_key_place_seq'), key_delete.revision, pg_current_xact_id(), greatest(at, kv.modified_at),
    greatest(at, kv.modified_at), 'deleted', false, key_delete.tenant, key_delete.key)
  returning exists (select from "holdfast".key_watcher w where w.expires_at > at and w.ephemeral = key_delete.ephemeral
    and w.tenant = key_delete.tenant and starts_with(key_delete.key, w.prefix)) into heard;
  if heard then perform pg_notify('holdfast_hint_d1580d2df7f24b6f5e2a861eba291875', 'keys'); end if;
  else
  select k.revision, k.xid, k.modified_at, k.expires_at, k.deleted, k.norev, k.value into kv
  from "holdfast".key_value k where k.tenant = key_delete.tenant and k.key = key_delete.key for no key update;
  at := clock_timestamp();
  revision := coalesce(kv.revision, -1);
  if not found or kv.deleted or kv.expires_at <= at or if_revision <> kv.revision or if_value <> kv.value then return; end if;
  revision := kv.revision + 1;
  if kv.xid = pg_current_xact_id() and not kv.norev then
    update "holdfast".key_change c set norev = true
    where c.tenant = key_delete.tenant and c.key = key_delete.key and c.revision = kv.revision and c.xid = kv.xid and not c.norev;
  end if;
  update "holdfast".key_value k set revision = key_delete.revision, xid = pg_current_xact_id(), modified_at = greatest(at, kv.modified_at),
    expires_at = null, deleted = true, norev = false, value = ''
  where k.tenant = key_delete.tenant and k.key = key_delete.key;
  perform "holdfast".begin_key_change(at);
  insert into "holdfast".key_change (place, revision, xid, changed_at, modified_at, kind, norev, tenant, key)
  values (nextval('"holdfast".key_place_seq'), key_delete.revision, pg_current_xact_id(), greatest(at, kv.modified_at),
    greatest(at, kv.modified_at), 'deleted', false, key_delete.tenant, key_delete.key)
  returning exists (select from "holdfast".key_watcher w where w.expires_at > at and w.ephemeral = key_delete.ephemeral
    and w.tenant = key_delete.tenant and starts_with(key_delete.key, w.prefix)) into heard;
  if heard then perform pg_notify('holdfast_hint_d1580d2df7f24b6f5e2a861eba291875', 'keys'); end if;
  end if;
  done := true;
end
$function$;

create or replace function holdfast.key_extend(tenant text, ephemeral boolean, key text, ttl_ms bigint, OUT done boolean, OUT revision bigint, OUT expires_at timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  kv record;
  at timestamptz;
  heard boolean;
begin
  if (octet_length(key) between 1 and 1024 and not starts_with(key, '__holdfast:')) is not true then perform "holdfast".check_key(key); end if;
  if ttl_ms <= 0 then raise exception using errcode = 'HF001', message = 'ttl_ms: must be greater than 0; null is no expiry'; end if;
  done := false;
  if ephemeral then
  select k.revision, k.xid, k.modified_at, k.expires_at, k.deleted, k.norev, k.value into kv
  from "holdfast".ephemeral_key_value k where k.tenant = key_extend.tenant and k.key = key_extend.key for no key update;
  at := clock_timestamp();
  revision := coalesce(kv.revision, -1);
  if not found or kv.deleted or kv.expires_at <= at then return; end if;
  expires_at := at + ttl_ms * interval '1 millisecond';
  update "holdfast".ephemeral_key_value k set expires_at = key_extend.expires_at
  where k.tenant = key_extend.tenant and k.key = key_extend.key;
  perform "holdfast".begin_ephemeral_key_change(at);
  insert into "holdfast".ephemeral_key_change (place, revision, xid, changed_at, modified_at, expires_at, kind, norev, tenant, key, value)
  values (nextval('"holdfast".ephemeral_key_place_seq'), kv.revision, pg_current_xact_id(), greatest(at, kv.modified_at), kv.modified_at,
    key_extend.expires_at, 'extended', kv.norev, key_extend.tenant, key_extend.key, kv.value)
  returning exists (select from "holdfast".key_watcher w where w.expires_at > at and w.ephemeral = key_extend.ephemeral
    and w.tenant = key_extend.tenant and starts_with(key_extend.key, w.prefix)) into heard;
  if heard then perform pg_notify('holdfast_hint_d1580d2df7f24b6f5e2a861eba291875', 'keys'); end if;
  else
  select k.revision, k.xid, k.modified_at, k.expires_at, k.deleted, k.norev, k.value into kv
  from "holdfast".key_value k where k.tenant = key_extend.tenant and k.key = key_extend.key for no key update;
  at := clock_timestamp();
  revision := coalesce(kv.revision, -1);
  if not found or kv.deleted or kv.expires_at <= at then return; end if;
  expires_at := at + ttl_ms * interval '1 millisecond';
  update "holdfast".key_value k set expires_at = key_extend.expires_at
  where k.tenant = key_extend.tenant and k.key = key_extend.key;
  perform "holdfast".begin_key_change(at);
  insert into "holdfast".key_change (place, revision, xid, changed_at, modified_at, expires_at, kind, norev, tenant, key, value)
  values (nextval('"holdfast".key_place_seq'), kv.revision, pg_current_xact_id(), greatest(at, kv.modified_at), kv.modified_at,
    key_extend.expires_at, 'extended', kv.norev, key_extend.tenant, key_extend.key, kv.value)
  returning exists (select from "holdfast".key_watcher w where w.expires_at > at and w.ephemeral = key_extend.ephemeral
    and w.tenant = key_extend.tenant and starts_with(key_extend.key, w.prefix)) into heard;
  if heard then perform pg_notify('holdfast_hint_d1580d2df7f24b6f5e2a861eba291875', 'keys'); end if;
  end if;
  done := true;
end
$function$;

create or replace function holdfast.key_get(tenant text, ephemeral boolean, key text, OUT found boolean, OUT value bytea, OUT revision bigint, OUT expires_at timestamp with time zone, OUT modified_at timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  -- By its name it would be what PL/pgSQL calls so.
  answer alias for $4;
begin
  if ephemeral then
  select k.value, k.revision, k.expires_at, k.modified_at into value, revision, expires_at, modified_at
  from "holdfast".ephemeral_key_value k
  where k.tenant = key_get.tenant and k.key = key_get.key and not k.deleted and (k.expires_at > clock_timestamp()) is not false;
  else
  select k.value, k.revision, k.expires_at, k.modified_at into value, revision, expires_at, modified_at
  from "holdfast".key_value k
  where k.tenant = key_get.tenant and k.key = key_get.key and not k.deleted and (k.expires_at > clock_timestamp()) is not false;
  end if;
  answer := revision is not null;
  if not answer then revision := -1; end if;
end
$function$;

create or replace function holdfast.key_get_as_of(tenant text, ephemeral boolean, key text, at_ms bigint, OUT found boolean, OUT value bytea, OUT revision bigint, OUT expires_at timestamp with time zone, OUT modified_at timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  -- By its name it would be what PL/pgSQL calls so.
  answer alias for $5;
begin
  if ephemeral then
  select x.value, x.revision, x.expires_at, x.modified_at into value, revision, expires_at, modified_at from (
    select c.value, c.revision, c.expires_at, c.modified_at from "holdfast".ephemeral_key_change c
    where c.tenant = key_get_as_of.tenant and c.key = key_get_as_of.key and not c.norev
      and c.changed_at < to_timestamp((at_ms + 1) / 1000.0)
    order by c.revision desc, c.place desc limit 1
  ) x where x.value is not null and (x.expires_at > to_timestamp(at_ms / 1000.0)) is not false;
  else
  select x.value, x.revision, x.expires_at, x.modified_at into value, revision, expires_at, modified_at from (
    select c.value, c.revision, c.expires_at, c.modified_at from "holdfast".key_change c
    where c.tenant = key_get_as_of.tenant and c.key = key_get_as_of.key and not c.norev
      and c.changed_at < to_timestamp((at_ms + 1) / 1000.0)
    order by c.revision desc, c.place desc limit 1
  ) x where x.value is not null and (x.expires_at > to_timestamp(at_ms / 1000.0)) is not false;
  end if;
  answer := revision is not null;
  if not answer then revision := -1; end if;
end
$function$;

create or replace function holdfast.key_get_revision(tenant text, ephemeral boolean, key text, at_revision bigint, OUT found boolean, OUT value bytea, OUT revision bigint, OUT expires_at timestamp with time zone, OUT modified_at timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  -- By its name it would be what PL/pgSQL calls so.
  answer alias for $5;
begin
  if ephemeral then
  select x.value, x.revision, x.modified_at into value, revision, modified_at from (
    select k.value, k.revision, k.modified_at from "holdfast".ephemeral_key_value k
    where k.tenant = key_get_revision.tenant and k.key = key_get_revision.key and at_revision in (-1, k.revision)
      and not k.deleted and (k.expires_at > clock_timestamp()) is not false
    union all
    select c.value, c.revision, c.modified_at from "holdfast".ephemeral_key_change c
    where c.tenant = key_get_revision.tenant and c.key = key_get_revision.key and c.revision = at_revision
      and not c.norev and c.kind = 'set'
  ) x limit 1;
  else
  select x.value, x.revision, x.modified_at into value, revision, modified_at from (
    select k.value, k.revision, k.modified_at from "holdfast".key_value k
    where k.tenant = key_get_revision.tenant and k.key = key_get_revision.key and at_revision in (-1, k.revision)
      and not k.deleted and (k.expires_at > clock_timestamp()) is not false
    union all
    select c.value, c.revision, c.modified_at from "holdfast".key_change c
    where c.tenant = key_get_revision.tenant and c.key = key_get_revision.key and c.revision = at_revision
      and not c.norev and c.kind = 'set'
  ) x limit 1;
  end if;
  answer := revision is not null;
  if not answer then revision := -1; end if;
end
$function$;

create or replace function holdfast.key_guard(tenant text, ephemeral boolean, bucket_or_prefix text)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  high text := "holdfast".key_prefix_end(bucket_or_prefix);
  parts text[] := string_to_array(bucket_or_prefix, '/');
begin
  perform pg_advisory_xact_lock("holdfast".key_bucket_lock(tenant, ephemeral,
    case when cardinality(parts) > 1 then array_to_string(trim_array(parts, 1), '/') end));
  if ephemeral then
  perform from "holdfast".ephemeral_key_value k
  where k.tenant = key_guard.tenant and k.key >= bucket_or_prefix and (high is null or k.key < high)
  order by k.key for share;
  else
  perform from "holdfast".key_value k
  where k.tenant = key_guard.tenant and k.key >= bucket_or_prefix and (high is null or k.key < high)
  order by k.key for share;
  end if;
end
$function$;

create or replace function holdfast.key_lock(tenant text, ephemeral boolean, keys text[], writes boolean[])
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  wanted record;
begin
  if ephemeral then
  for wanted in select n.key, bool_or(n.writes) as writes from unnest(keys, writes) as n (key, writes)
    group by n.key order by n.key collate "C"
  loop
    loop
      if wanted.writes then
        perform from "holdfast".ephemeral_key_value k where k.tenant = key_lock.tenant and k.key = wanted.key for no key update;
      else
        perform from "holdfast".ephemeral_key_value k where k.tenant = key_lock.tenant and k.key = wanted.key for share;
      end if;
      exit when found;
      perform "holdfast".check_key(wanted.key);
      perform "holdfast".enter_key_buckets(tenant, ephemeral, wanted.key);
      insert into "holdfast".ephemeral_key_value (revision, xid, modified_at, deleted, norev, tenant, key, value)
      values (-1, pg_current_xact_id(), '-infinity', true, true, key_lock.tenant, wanted.key, '') on conflict do nothing;
    end loop;
  end loop;
  else
  for wanted in select n.key, bool_or(n.writes) as writes from unnest(keys, writes) as n (key, writes)
    group by n.key order by n.key collate "C"
  loop
    loop
      if wanted.writes then
        perform from "holdfast".key_value k where k.tenant = key_lock.tenant and k.key = wanted.key for no key update;
      else
        perform from "holdfast".key_value k where k.tenant = key_lock.tenant and k.key = wanted.key for share;
      end if;
      exit when found;
      perform "holdfast".check_key(wanted.key);
      perform "holdfast".enter_key_buckets(tenant, ephemeral, wanted.key);
      insert into "holdfast".key_value (revision, xid, modified_at, deleted, norev, tenant, key, value)
      values (-1, pg_current_xact_id(), '-infinity', true, true, key_lock.tenant, wanted.key, '') on conflict do nothing;
    end loop;
  end loop;
  end if;
end
$function$;

create or replace function holdfast.key_prefix(tenant text, ephemeral boolean, prefix text, as_of_ms bigint)
 RETURNS TABLE(key text, value bytea, revision bigint, expires_at timestamp with time zone, modified_at timestamp with time zone)
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select * from "holdfast".key_range(tenant, ephemeral, prefix, true, as_of_ms)
$function$;

create or replace function holdfast.key_prefix_end(prefix text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  last integer;
begin
  for count in reverse length(prefix)..1 loop
    last := ascii(substr(prefix, count, 1));
    -- 55296 to 57343 are surrogates, which are no characters.
    if last < 1114111 then return left(prefix, count - 1) || chr(case last when 55295 then 57344 else last + 1 end); end if;
  end loop;
  return null;
end
$function$;

create or replace function holdfast.key_range(tenant text, ephemeral boolean, prefix text, deep boolean, as_of_ms bigint)
 RETURNS TABLE(key text, value bytea, revision bigint, expires_at timestamp with time zone, modified_at timestamp with time zone)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  high text := "holdfast".key_prefix_end(prefix);
  skip integer := length(prefix) + 1;
begin
  if ephemeral then
  if as_of_ms is null then
    return query select k.key, k.value, k.revision, k.expires_at, k.modified_at from "holdfast".ephemeral_key_value k
      where k.tenant = key_range.tenant and k.key >= prefix and (high is null or k.key < high)
        and (deep or strpos(substr(k.key, skip), '/') = 0)
        and not k.deleted and (k.expires_at > clock_timestamp()) is not false
      order by k.key;
  else
    return query select k.key, x.value, x.revision, x.expires_at, x.modified_at from "holdfast".ephemeral_key_value k
      cross join lateral (
        select c.value, c.revision, c.expires_at, c.modified_at from "holdfast".ephemeral_key_change c
        where c.tenant = k.tenant and c.key = k.key and not c.norev and c.changed_at < to_timestamp((as_of_ms + 1) / 1000.0)
        order by c.revision desc, c.place desc limit 1
      ) x
      where k.tenant = key_range.tenant and k.key >= prefix and (high is null or k.key < high)
        and (deep or strpos(substr(k.key, skip), '/') = 0)
        and x.value is not null and (x.expires_at > to_timestamp(as_of_ms / 1000.0)) is not false
      order by k.key;
  end if;
  else
  if as_of_ms is null then
    return query select k.key, k.value, k.revision, k.expires_at, k.modified_at from "holdfast".key_value k
      where k.tenant = key_range.tenant and k.key >= prefix and (high is null or k.key < high)
        and (deep or strpos(substr(k.key, skip), '/') = 0)
        and not k.deleted and (k.expires_at > clock_timestamp()) is not false
      order by k.key;
  else
    return query select k.key, x.value, x.revision, x.expires_at, x.modified_at from "holdfast".key_value k
      cross join lateral (
        select c.value, c.revision, c.expires_at, c.modified_at from "holdfast".key_change c
        where c.tenant = k.tenant and c.key = k.key and not c.norev and c.changed_at < to_timestamp((as_of_ms + 1) / 1000.0)
        order by c.revision desc, c.place desc limit 1
      ) x
      where k.tenant = key_range.tenant and k.key >= prefix and (high is null or k.key < high)
        and (deep or strpos(substr(k.key, skip), '/') = 0)
        and x.value is not null and (x.expires_at > to_timestamp(as_of_ms / 1000.0)) is not false
      order by k.key;
  end if;
  end if;
end
$function$;

create or replace function holdfast.key_set(tenant text, ephemeral boolean, key text, value bytea, ttl_ms bigint, if_absent boolean, if_present boolean, if_value bytea, if_revision bigint, norev boolean, OUT done boolean, OUT revision bigint, OUT value_now bytea, OUT expires_at timestamp with time zone, OUT modified_at timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  kv record;
  at timestamptz;
  live boolean;
  created boolean := false;
  heard boolean;
begin
  if (octet_length(key) between 1 and 1024 and not starts_with(key, '__holdfast:')) is not true then perform "holdfast".check_key(key); end if;
  if ttl_ms < 0 then raise exception using errcode = 'HF001', message = 'ttl_ms: must not be negative'; end if;
  if value is null then value := ''; end if;
  done := false;
  if ephemeral then
  loop
    select k.revision, k.xid, k.modified_at, k.expires_at, k.deleted, k.norev, k.value into kv
    from "holdfast".ephemeral_key_value k where k.tenant = key_set.tenant and k.key = key_set.key for no key update;
    at := clock_timestamp();
    exit when found;
    if if_present or if_value <> '' or if_revision <> -1 then
      revision := -1;
      return;
    end if;
    perform "holdfast".enter_key_buckets(tenant, ephemeral, key);
    at := clock_timestamp();
    revision := case when ephemeral then "holdfast".ephemeral_epoch() << 40 else 0 end;
    modified_at := at;
    expires_at := at + nullif(ttl_ms, 0) * interval '1 millisecond';
    insert into "holdfast".ephemeral_key_value (revision, xid, modified_at, expires_at, deleted, norev, tenant, key, value)
    values (key_set.revision, pg_current_xact_id(), key_set.modified_at, key_set.expires_at, false, coalesce(key_set.norev, false),
      key_set.tenant, key_set.key, key_set.value)
    on conflict do nothing;
    created := found;
    exit when created;
  end loop;
  if not created then
    live := not kv.deleted and (kv.expires_at > at) is not false;
    if (if_absent and live) or (if_present and not live) or if_revision <> kv.revision
      or if_value <> (case when live then kv.value else '' end) then
      revision := kv.revision;
      if live then
        value_now := kv.value;
        expires_at := kv.expires_at;
        modified_at := kv.modified_at;
      end if;
      return;
    end if;
    revision := case when kv.revision >= 0 then kv.revision + 1 when ephemeral then "holdfast".ephemeral_epoch() << 40 else 0 end;
    modified_at := greatest(at, kv.modified_at);
    expires_at := at + nullif(ttl_ms, 0) * interval '1 millisecond';
    -- Of several values that a transaction gives a key, only the last is part of the history.
    if kv.xid = pg_current_xact_id() and not kv.norev then
      update "holdfast".ephemeral_key_change c set norev = true
      where c.tenant = key_set.tenant and c.key = key_set.key and c.revision = kv.revision and c.xid = kv.xid and not c.norev;
    end if;
    update "holdfast".ephemeral_key_value k set revision = key_set.revision, xid = pg_current_xact_id(), modified_at = key_set.modified_at,
      expires_at = key_set.expires_at, deleted = false, norev = coalesce(key_set.norev, false), value = key_set.value
    where k.tenant = key_set.tenant and k.key = key_set.key;
  end if;
  perform "holdfast".begin_ephemeral_key_change(at);
  insert into "holdfast".ephemeral_key_change (place, revision, xid, changed_at, modified_at, expires_at, kind, norev, tenant, key, value)
  values (nextval('"holdfast".ephemeral_key_place_seq'), key_set.revision, pg_current_xact_id(), key_set.modified_at, key_set.modified_at, key_set.expires_at,
    'set', coalesce(key_set.norev, false), key_set.tenant, key_set.key, key_set.value)
  returning exists (select from "holdfast".key_watcher w where w.expires_at > at and w.ephemeral = key_set.ephemeral
    and w.tenant = key_set.tenant and starts_with(key_set.key, w.prefix)) into heard;
  if heard then perform pg_notify('holdfast_hint_d1580d2df7f24b6f5e2a861eba291875', 'keys'); end if;
  else
  loop
    select k.revision, k.xid, k.modified_at, k.expires_at, k.deleted, k.norev, k.value into kv
    from "holdfast".key_value k where k.tenant = key_set.tenant and k.key = key_set.key for no key update;
    at := clock_timestamp();
    exit when found;
    if if_present or if_value <> '' or if_revision <> -1 then
      revision := -1;
      return;
    end if;
    perform "holdfast".enter_key_buckets(tenant, ephemeral, key);
    at := clock_timestamp();
    revision := case when ephemeral then "holdfast".ephemeral_epoch() << 40 else 0 end;
    modified_at := at;
    expires_at := at + nullif(ttl_ms, 0) * interval '1 millisecond';
    insert into "holdfast".key_value (revision, xid, modified_at, expires_at, deleted, norev, tenant, key, value)
    values (key_set.revision, pg_current_xact_id(), key_set.modified_at, key_set.expires_at, false, coalesce(key_set.norev, false),
      key_set.tenant, key_set.key, key_set.value)
    on conflict do nothing;
    created := found;
    exit when created;
  end loop;
  if not created then
    live := not kv.deleted and (kv.expires_at > at) is not false;
    if (if_absent and live) or (if_present and not live) or if_revision <> kv.revision
      or if_value <> (case when live then kv.value else '' end) then
      revision := kv.revision;
      if live then
        value_now := kv.value;
        expires_at := kv.expires_at;
        modified_at := kv.modified_at;
      end if;
      return;
    end if;
    revision := case when kv.revision >= 0 then kv.revision + 1 when ephemeral then "holdfast".ephemeral_epoch() << 40 else 0 end;
    modified_at := greatest(at, kv.modified_at);
    expires_at := at + nullif(ttl_ms, 0) * interval '1 millisecond';
    -- Of several values that a transaction gives a key, only the last is part of the history.
    if kv.xid = pg_current_xact_id() and not kv.norev then
      update "holdfast".key_change c set norev = true
      where c.tenant = key_set.tenant and c.key = key_set.key and c.revision = kv.revision and c.xid = kv.xid and not c.norev;
    end if;
    update "holdfast".key_value k set revision = key_set.revision, xid = pg_current_xact_id(), modified_at = key_set.modified_at,
      expires_at = key_set.expires_at, deleted = false, norev = coalesce(key_set.norev, false), value = key_set.value
    where k.tenant = key_set.tenant and k.key = key_set.key;
  end if;
  perform "holdfast".begin_key_change(at);
  insert into "holdfast".key_change (place, revision, xid, changed_at, modified_at, expires_at, kind, norev, tenant, key, value)
  values (nextval('"holdfast".key_place_seq'), key_set.revision, pg_current_xact_id(), key_set.modified_at, key_set.modified_at, key_set.expires_at,
    'set', coalesce(key_set.norev, false), key_set.tenant, key_set.key, key_set.value)
  returning exists (select from "holdfast".key_watcher w where w.expires_at > at and w.ephemeral = key_set.ephemeral
    and w.tenant = key_set.tenant and starts_with(key_set.key, w.prefix)) into heard;
  if heard then perform pg_notify('holdfast_hint_d1580d2df7f24b6f5e2a861eba291875', 'keys'); end if;
  end if;
  done := true;
  value_now := value;
end
$function$;

create or replace function holdfast.key_unlock_unwritten(tenant text, ephemeral boolean, keys text[])
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
begin
  if ephemeral then
  delete from "holdfast".ephemeral_key_value k where k.tenant = key_unlock_unwritten.tenant and k.revision = -1 and k.key in (
    select u.key from "holdfast".ephemeral_key_value u
    where u.tenant = key_unlock_unwritten.tenant and u.key = any (keys) and u.revision = -1
    order by u.key for update skip locked);
  else
  delete from "holdfast".key_value k where k.tenant = key_unlock_unwritten.tenant and k.revision = -1 and k.key in (
    select u.key from "holdfast".key_value u
    where u.tenant = key_unlock_unwritten.tenant and u.key = any (keys) and u.revision = -1
    order by u.key for update skip locked);
  end if;
end
$function$;

create or replace function holdfast.prune_archive(completed interval, cancelled interval, max_rows integer DEFAULT 1000)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  archive_end bigint;
  pruned integer := 0;
  keys integer;
begin
  select r.end_id into archive_end from "holdfast".id_range r where r.is_archive;
  if archive_end is not null then
    with past as (
      select o.job_id from "holdfast".outcome o where o.job_id < archive_end
        and "holdfast".is_past_retention(o.state, o.finished_at, prune_archive.completed, prune_archive.cancelled)
      order by o.job_id limit max_rows for update skip locked
    ), no_attempts as (
      delete from "holdfast".attempt a using past where a.job_id = past.job_id
    ), no_jobs as (
      delete from "holdfast".job j using past where j.id = past.job_id
    ), no_outcomes as (
      delete from "holdfast".outcome o using past where o.job_id = past.job_id returning 1
    )
    select count(*) into pruned from no_outcomes;
  end if;
  with gone as (
    delete from "holdfast".idempotency_key k where (k.tenant, k.key) in (
      select e.tenant, e.key from "holdfast".idempotency_key e where e.expires_at < now() order by e.expires_at limit max_rows for update skip locked)
    returning 1
  )
  select count(*) into keys from gone;
  return greatest(pruned, keys);
end
$function$;

create or replace function holdfast.prune_effects(kept interval, max_rows integer DEFAULT 1000)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  effects integer;
  checkpoints integer;
  questions integer;
  oldest bigint := (select min(r.end_id) from "holdfast".id_range r where not r.is_archive);
begin
  with past as (
    select tenant, name, key from "holdfast".effect
    where state in ('happened', 'open') and ended_at < now() - kept
    order by ended_at limit max_rows for update skip locked
  ), gone as (
    delete from "holdfast".effect e using past p where (e.tenant, e.name, e.key) = (p.tenant, p.name, p.key) returning 1
  )
  select count(*) into effects from gone;

  with past as (
    select c.job_id from "holdfast".checkpoint c
    where c.job_id < oldest
      and not exists (select from "holdfast".job j where j.id = c.job_id)
    order by c.job_id limit max_rows for update skip locked
  ), gone as (
    delete from "holdfast".checkpoint c using past p where c.job_id = p.job_id returning 1
  )
  select count(*) into checkpoints from gone;

  with past as (
    select q.job_id from "holdfast".effect_question q
    where q.job_id < oldest and not exists (select from "holdfast".job j where j.id = q.job_id)
    order by q.job_id limit max_rows for update skip locked
  ), gone as (
    delete from "holdfast".effect_question q using past p where q.job_id = p.job_id returning 1
  )
  select count(*) into questions from gone;
  return greatest(effects, checkpoints, questions);
end
$function$;

create or replace function holdfast.retire_range(completed interval, cancelled interval, max_kept integer DEFAULT 20000)
 RETURNS text
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  oldest "holdfast".id_range%rowtype;
  archive "holdfast".id_range%rowtype;
  next_id bigint;
  kept bigint;
  parent text;
  key text;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('holdfast retire ' || 'holdfast', 0)) then return 'busy'; end if;
  select last_value into next_id from "holdfast".job_seq;
  select * into oldest from "holdfast".id_range r where not r.is_archive order by r.first_id limit 1;
  if oldest.end_id > next_id then return 'none'; end if;

  -- Mostly something recent is there at once; only a range that may be retired is read to its end.
  select count(*) into kept from (
    select from "holdfast".job j where j.id >= oldest.first_id and j.id < oldest.end_id and not exists (
      select from "holdfast".outcome o where o.job_id = j.id
        and "holdfast".is_past_retention(o.state, o.finished_at, retire_range.completed, retire_range.cancelled))
    limit max_kept + 1
  ) rest;
  if kept > max_kept then return 'kept'; end if;

  begin
    set local lock_timeout = '200ms';
    lock table "holdfast".job, "holdfast".outcome, "holdfast".attempt in access exclusive mode;
    set local lock_timeout = 0;
  exception when lock_not_available then
    return 'busy';
  end;

  select * into archive from "holdfast".id_range r where r.is_archive;
  foreach parent in array array['job', 'outcome', 'attempt'] loop
    key := case parent when 'job' then 'id' else 'job_id' end;
    if archive.first_id is null then
      execute format('create table %I.%I (like %I.%I including defaults including constraints including indexes)',
        'holdfast', parent || '_archive', 'holdfast', parent);
    else
      execute format('alter table %I.%I detach partition %I.%I', 'holdfast', parent, 'holdfast', parent || '_archive');
    end if;
    execute format('alter table %I.%I detach partition %I.%I', 'holdfast', parent, 'holdfast', parent || '_' || oldest.first_id);
  end loop;

  -- What is kept is decided once, by the job; its outcome and attempts go with it.
  execute format('insert into %1$I.job_archive select j.* from %1$I.%2$I j where not exists (
      select from %1$I.%3$I o where o.job_id = j.id and %1$I.is_past_retention(o.state, o.finished_at, $1, $2))',
    'holdfast', 'job_' || oldest.first_id, 'outcome_' || oldest.first_id) using retire_range.completed, retire_range.cancelled;
  foreach parent in array array['outcome', 'attempt'] loop
    execute format('insert into %1$I.%2$I select x.* from %1$I.%3$I x join %1$I.job_archive j on j.id = x.job_id',
      'holdfast', parent || '_archive', parent || '_' || oldest.first_id);
  end loop;
  foreach parent in array array['job', 'outcome', 'attempt'] loop
    execute format('drop table %I.%I', 'holdfast', parent || '_' || oldest.first_id);
    execute format('alter table %I.%I attach partition %I.%I for values from (minvalue) to (%s)',
      'holdfast', parent, 'holdfast', parent || '_archive', oldest.end_id);
  end loop;
  delete from "holdfast".id_range where is_archive;
  update "holdfast".id_range set is_archive = true, first_id = least(coalesce(archive.first_id, oldest.first_id), oldest.first_id)
  where first_id = oldest.first_id;
  return 'retired';
end
$function$;

create or replace function holdfast.rotate_ids(max_age interval DEFAULT '06:00:00'::interval)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  next_id bigint;
  present "holdfast".id_range%rowtype;
begin
  lock table "holdfast".id_range in share row exclusive mode;
  select last_value into next_id from "holdfast".job_seq;
  select * into present from "holdfast".id_range r where r.first_id <= next_id and next_id < r.end_id;
  if not found then return false; end if;
  if present.used_since is null then
    update "holdfast".id_range set used_since = clock_timestamp() where first_id = present.first_id;
    return false;
  end if;
  if present.used_since > clock_timestamp() - max_age or next_id - present.first_id > (present.end_id - present.first_id) / 2
    or not exists (select from "holdfast".id_range r where r.first_id = present.end_id) then
    return false;
  end if;
  perform setval('"holdfast"."job_seq"'::regclass, present.end_id);
  return true;
end
$function$;

create view holdfast.jobs as
  select job.id, job.name, job.queue, job.tenant, place.state, place.attempts, job.max_attempts, job.priority,
    job.unique_key, job.enqueued_at, coalesce(place.run_at, job.run_at) as run_at, place.finished_at, place.reason,
    place.worker_id, place.token as fencing_token, job.input, place.result, place.error
  from holdfast.job join (
    select job_id, 'available'::text as state, attempts, null::timestamptz as run_at, null::timestamptz as finished_at,
      null::text as reason, null::bigint as worker_id, null::bigint as token, null::json as result, null::json as error
    from holdfast.ready
    union all
    select job_id, case when retrying then 'retryable' else 'scheduled' end, attempts, run_at, null, null, null, null, null, null
    from holdfast.scheduled
    union all
    select job_id, 'available', attempts, null, null, reason, null, null, null, null from holdfast.parked
    union all
    select held.job_id, 'executing', coalesce(held.attempt, 1::smallint), null, null,
      case when held.job_id = any (lease.cancelled) then 'cancel requested' end, lease.worker_id, lease.token, null, null
    from holdfast.lease cross join lateral unnest(lease.job_ids, lease.attempts) held (job_id, attempt)
    where not exists (select from holdfast.attempt a where a.job_id = held.job_id and a.token = lease.token)
      and not exists (select from holdfast.outcome o where o.job_id = held.job_id)
    union all
    select job_id, state::text, attempts, null, finished_at, reason, null, token, result, error from holdfast.outcome
  ) place on place.job_id = job.id;

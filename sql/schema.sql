-- The whole schema, made from sql/migrations by scripts/dump-schema.mjs. Do not edit.

create schema holdfast;

create sequence holdfast.audit_id_seq as bigint start 1 increment 1 cache 1;

create sequence holdfast.fencing_token_seq as bigint start 1 increment 1 cache 1;

create sequence holdfast.job_seq as bigint start 1 increment 1 cache 1;

create sequence holdfast.worker_seq as bigint start 1 increment 1 cache 1;

create type holdfast.attempt_end as enum ('failed', 'timed-out', 'snoozed', 'handed-back', 'interrupted', 'parked', 'worker-lost', 'discarded', 'cancelled');

create type holdfast.effect_state as enum ('intended', 'uncertain', 'open', 'happened');

create type holdfast.job_state as enum ('scheduled', 'available', 'executing', 'retryable', 'completed', 'cancelled', 'discarded');

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

create table holdfast.lock (
  expires_at timestamp with time zone, -- held until then; null: never granted
  acquired_at timestamp with time zone,
  waited_until timestamp with time zone, -- so long somebody waits for it, and has to be told when it is free
  prune_at timestamp with time zone not null default (clock_timestamp() + '1 day'::interval), -- looked at then, whether it is still used
  token bigint, -- of the newest grant
  tenant text collate "C" not null,
  resource text collate "C" not null,
  owner text collate "C", -- null: nobody's
  constraint lock_pkey PRIMARY KEY (tenant, resource)
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000, fillfactor=70);

create unlogged table holdfast.lock_ephemeral (
  expires_at timestamp with time zone,
  acquired_at timestamp with time zone,
  waited_until timestamp with time zone,
  prune_at timestamp with time zone not null default (clock_timestamp() + '1 day'::interval),
  token bigint,
  tenant text collate "C" not null,
  resource text collate "C" not null,
  owner text collate "C",
  constraint lock_ephemeral_pkey PRIMARY KEY (tenant, resource)
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000, fillfactor=70);

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

create index idempotency_key_expiry_idx ON holdfast.idempotency_key USING btree (expires_at);

create index lease_worker_idx ON holdfast.lease USING btree (worker_id);

create index lock_ephemeral_prune_idx ON holdfast.lock_ephemeral USING btree (prune_at);

create index lock_prune_idx ON holdfast.lock USING btree (prune_at);

create index parked_name_idx ON holdfast.parked USING btree (name, queue, priority, seq);

create index ready_claim_idx ON holdfast.ready USING btree (queue, priority, seq);

create index scheduled_due_idx ON holdfast.scheduled USING btree (run_at, job_id);

create index unique_key_job_idx ON holdfast.unique_key USING btree (job_id);

create or replace function holdfast.acquire_lock(the_tenant text, the_resource text, the_owner text, lease_ms double precision, wait_ms double precision, OUT held boolean, OUT again boolean, OUT fencing_token bigint, OUT ends_at timestamp with time zone, OUT left_ms double precision)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
AS $function$
declare
  seen "holdfast".lock%rowtype;
  is_there boolean;
  former_timeout text;
  granted_at timestamptz;
begin
  held := false;
  again := false;
  select l.* into seen from "holdfast".lock l where l.tenant = the_tenant and l.resource = the_resource;
  is_there := found;

  if seen.owner <> the_owner and seen.expires_at >= clock_timestamp() then
    left_ms := date_part('epoch', seen.expires_at - clock_timestamp()) * 1000;
    if wait_ms is null or seen.waited_until > clock_timestamp() + least(wait_ms, 30000) * interval '1 millisecond' then
      return;
    end if;
    -- Looked at again under the lock: a release before it would not have seen the mark, and the lock is free then. An
    -- asserting transaction is not in the way of the mark.
    select l.* into seen from "holdfast".lock l where l.tenant = the_tenant and l.resource = the_resource
    for no key update skip locked;
    if not found then
      left_ms := null;
      return;
    end if;
    if seen.owner <> the_owner and seen.expires_at >= clock_timestamp() then
      left_ms := date_part('epoch', seen.expires_at - clock_timestamp()) * 1000;
      -- Nothing is lost with a mark: whoever waits also looks.
      perform set_config('synchronous_commit', 'off', true);
      update "holdfast".lock l set waited_until = greatest(l.waited_until,
        clock_timestamp() + (least(wait_ms, 60000) + 1000) * interval '1 millisecond')
      where l.tenant = the_tenant and l.resource = the_resource;
      return;
    end if;
  end if;

  if (seen.owner = the_owner and seen.expires_at >= clock_timestamp()) is not true then
    begin
      if is_there then
        select l.* into seen from "holdfast".lock l where l.tenant = the_tenant and l.resource = the_resource
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
        insert into "holdfast".lock (tenant, resource) values (the_tenant, the_resource) on conflict do nothing;
        is_there := not found;
        perform set_config('lock_timeout', former_timeout, true);
        if is_there then
          select l.* into seen from "holdfast".lock l where l.tenant = the_tenant and l.resource = the_resource
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
      update "holdfast".lock l set owner = the_owner, token = nextval('"holdfast"."fencing_token_seq"'::regclass),
        expires_at = granted_at + lease_ms * interval '1 millisecond', acquired_at = granted_at
      where l.tenant = the_tenant and l.resource = the_resource
      returning l.* into seen;
      if current_setting('synchronous_commit') not in ('on', 'remote_apply') then
        perform set_config('synchronous_commit', 'on', true);
      end if;
      
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
$function$;

create or replace function holdfast.acquire_lock_ephemeral(the_tenant text, the_resource text, the_owner text, lease_ms double precision, wait_ms double precision, OUT held boolean, OUT again boolean, OUT fencing_token bigint, OUT ends_at timestamp with time zone, OUT left_ms double precision)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
AS $function$
declare
  seen "holdfast".lock_ephemeral%rowtype;
  is_there boolean;
  former_timeout text;
  granted_at timestamptz;
begin
  held := false;
  again := false;
  select l.* into seen from "holdfast".lock_ephemeral l where l.tenant = the_tenant and l.resource = the_resource;
  is_there := found;

  if seen.owner <> the_owner and seen.expires_at >= clock_timestamp() then
    left_ms := date_part('epoch', seen.expires_at - clock_timestamp()) * 1000;
    if wait_ms is null or seen.waited_until > clock_timestamp() + least(wait_ms, 30000) * interval '1 millisecond' then
      return;
    end if;
    -- Looked at again under the lock: a release before it would not have seen the mark, and the lock is free then. An
    -- asserting transaction is not in the way of the mark.
    select l.* into seen from "holdfast".lock_ephemeral l where l.tenant = the_tenant and l.resource = the_resource
    for no key update skip locked;
    if not found then
      left_ms := null;
      return;
    end if;
    if seen.owner <> the_owner and seen.expires_at >= clock_timestamp() then
      left_ms := date_part('epoch', seen.expires_at - clock_timestamp()) * 1000;
      -- Nothing is lost with a mark: whoever waits also looks.
      perform set_config('synchronous_commit', 'off', true);
      update "holdfast".lock_ephemeral l set waited_until = greatest(l.waited_until,
        clock_timestamp() + (least(wait_ms, 60000) + 1000) * interval '1 millisecond')
      where l.tenant = the_tenant and l.resource = the_resource;
      return;
    end if;
  end if;

  if (seen.owner = the_owner and seen.expires_at >= clock_timestamp()) is not true then
    begin
      if is_there then
        select l.* into seen from "holdfast".lock_ephemeral l where l.tenant = the_tenant and l.resource = the_resource
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
        insert into "holdfast".lock_ephemeral (tenant, resource) values (the_tenant, the_resource) on conflict do nothing;
        is_there := not found;
        perform set_config('lock_timeout', former_timeout, true);
        if is_there then
          select l.* into seen from "holdfast".lock_ephemeral l where l.tenant = the_tenant and l.resource = the_resource
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
      update "holdfast".lock_ephemeral l set owner = the_owner, token = nextval('"holdfast"."fencing_token_seq"'::regclass),
        expires_at = granted_at + lease_ms * interval '1 millisecond', acquired_at = granted_at
      where l.tenant = the_tenant and l.resource = the_resource
      returning l.* into seen;
      if current_setting('synchronous_commit') not in ('on', 'remote_apply') then
        perform set_config('synchronous_commit', 'on', true);
      end if;
      perform pg_logical_emit_message(true, 'holdfast', '');
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
$function$;

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

create or replace function holdfast.assert_lock(resource text, token bigint, tenant text DEFAULT ''::text, durability text DEFAULT 'persistent'::text)
 RETURNS void
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
AS $function$
declare
  held_until timestamptz;
begin
  if assert_lock.durability = 'ephemeral' then
    select case when l.token = assert_lock.token and l.owner is not null then l.expires_at end into held_until
    from "holdfast".lock_ephemeral l where l.tenant = assert_lock.tenant and l.resource = assert_lock.resource for key share;
  elsif assert_lock.durability = 'persistent' then
    select case when l.token = assert_lock.token and l.owner is not null then l.expires_at end into held_until
    from "holdfast".lock l where l.tenant = assert_lock.tenant and l.resource = assert_lock.resource for key share;
  else
    perform "holdfast".check_option('durability', false, 'must be persistent or ephemeral');
  end if;
  if held_until >= clock_timestamp() is not true then
    raise exception using errcode = 'HF010',
      message = format('the lock on "%s" is not held with token %s', assert_lock.resource, assert_lock.token),
      detail = json_build_object('resource', assert_lock.resource, 'token', assert_lock.token::text)::text,
      hint = 'Roll back. Whoever holds the lock now goes on from what is committed.';
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

create or replace function holdfast.extend_lock(the_tenant text, the_resource text, the_owner text, the_token bigint, lease_ms double precision, OUT ends_at timestamp with time zone, OUT left_ms double precision)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
AS $function$
declare
  seen "holdfast".lock%rowtype;
begin
  select l.* into seen from "holdfast".lock l where l.tenant = the_tenant and l.resource = the_resource for no key update;
  if seen.owner = the_owner and seen.token = coalesce(the_token, seen.token) and seen.expires_at >= clock_timestamp() then
    update "holdfast".lock l set expires_at = clock_timestamp() + lease_ms * interval '1 millisecond'
    where l.tenant = the_tenant and l.resource = the_resource
    returning l.expires_at into ends_at;
    left_ms := date_part('epoch', ends_at - clock_timestamp()) * 1000;
    if ends_at < seen.expires_at and seen.waited_until >= clock_timestamp() then
      perform pg_notify('holdfast_hint_d1580d2df7f24b6f5e2a861eba291875', "holdfast".lock_topic('persistent', the_tenant, the_resource));
    end if;
  end if;
end
$function$;

create or replace function holdfast.extend_lock_ephemeral(the_tenant text, the_resource text, the_owner text, the_token bigint, lease_ms double precision, OUT ends_at timestamp with time zone, OUT left_ms double precision)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
AS $function$
declare
  seen "holdfast".lock_ephemeral%rowtype;
begin
  select l.* into seen from "holdfast".lock_ephemeral l where l.tenant = the_tenant and l.resource = the_resource for no key update;
  if seen.owner = the_owner and seen.token = coalesce(the_token, seen.token) and seen.expires_at >= clock_timestamp() then
    update "holdfast".lock_ephemeral l set expires_at = clock_timestamp() + lease_ms * interval '1 millisecond'
    where l.tenant = the_tenant and l.resource = the_resource
    returning l.expires_at into ends_at;
    left_ms := date_part('epoch', ends_at - clock_timestamp()) * 1000;
    if ends_at < seen.expires_at and seen.waited_until >= clock_timestamp() then
      perform pg_notify('holdfast_hint_d1580d2df7f24b6f5e2a861eba291875', "holdfast".lock_topic('ephemeral', the_tenant, the_resource));
    end if;
  end if;
end
$function$;

create or replace function holdfast.force_release_lock(the_tenant text, the_resource text, actor text, subject text, reason text, OUT former_owner text, OUT fencing_token bigint)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
AS $function$
declare
  seen "holdfast".lock%rowtype;
begin
  select l.* into seen from "holdfast".lock l where l.tenant = the_tenant and l.resource = the_resource for no key update;
  if seen.owner is null or seen.expires_at < clock_timestamp() then return; end if;
  update "holdfast".lock l set owner = null, expires_at = clock_timestamp()
  where l.tenant = the_tenant and l.resource = the_resource;
  insert into "holdfast".audit (actor, action, subject, note) values (actor, 'lock-release', subject, reason);
  if seen.waited_until >= clock_timestamp() then
    perform pg_notify('holdfast_hint_d1580d2df7f24b6f5e2a861eba291875', "holdfast".lock_topic('persistent', the_tenant, the_resource));
  end if;
  former_owner := seen.owner;
  fencing_token := seen.token;
end
$function$;

create or replace function holdfast.force_release_lock_ephemeral(the_tenant text, the_resource text, actor text, subject text, reason text, OUT former_owner text, OUT fencing_token bigint)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
AS $function$
declare
  seen "holdfast".lock_ephemeral%rowtype;
begin
  select l.* into seen from "holdfast".lock_ephemeral l where l.tenant = the_tenant and l.resource = the_resource for no key update;
  if seen.owner is null or seen.expires_at < clock_timestamp() then return; end if;
  update "holdfast".lock_ephemeral l set owner = null, expires_at = clock_timestamp()
  where l.tenant = the_tenant and l.resource = the_resource;
  insert into "holdfast".audit (actor, action, subject, note) values (actor, 'lock-release', subject, reason);
  if seen.waited_until >= clock_timestamp() then
    perform pg_notify('holdfast_hint_d1580d2df7f24b6f5e2a861eba291875', "holdfast".lock_topic('ephemeral', the_tenant, the_resource));
  end if;
  former_owner := seen.owner;
  fencing_token := seen.token;
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

create or replace function holdfast.lock_topic(durability text, tenant text, resource text)
 RETURNS text
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select 'lock:' || left(encode(sha256(convert_to(durability || chr(10) || tenant || chr(10) || resource, 'UTF8')), 'hex'), 32)
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

create or replace function holdfast.prune_locks(kept interval, max_rows integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  looked integer;
begin
  with due as materialized (
    select l.tenant, l.resource,
      coalesce(l.expires_at < clock_timestamp() - kept or (l.owner is null and l.expires_at <= clock_timestamp() - kept), true) as is_idle
    from "holdfast".lock l
    where l.prune_at <= clock_timestamp() order by l.prune_at limit max_rows for update skip locked
  ), gone as (
    delete from "holdfast".lock l using due d where d.is_idle and (l.tenant, l.resource) = (d.tenant, d.resource)
  ), stay as (
    update "holdfast".lock l set prune_at = clock_timestamp() + interval '1 day' from due d
    where not d.is_idle and (l.tenant, l.resource) = (d.tenant, d.resource)
  )
  select count(*) into looked from due;
  return looked;
end
$function$;

create or replace function holdfast.prune_locks_ephemeral(kept interval, max_rows integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  looked integer;
begin
  with due as materialized (
    select l.tenant, l.resource,
      coalesce(l.expires_at < clock_timestamp() - kept or (l.owner is null and l.expires_at <= clock_timestamp() - kept), true) as is_idle
    from "holdfast".lock_ephemeral l
    where l.prune_at <= clock_timestamp() order by l.prune_at limit max_rows for update skip locked
  ), gone as (
    delete from "holdfast".lock_ephemeral l using due d where d.is_idle and (l.tenant, l.resource) = (d.tenant, d.resource)
  ), stay as (
    update "holdfast".lock_ephemeral l set prune_at = clock_timestamp() + interval '1 day' from due d
    where not d.is_idle and (l.tenant, l.resource) = (d.tenant, d.resource)
  )
  select count(*) into looked from due;
  return looked;
end
$function$;

create or replace function holdfast.release_lock(the_tenant text, the_resource text, the_owner text, the_token bigint)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
AS $function$
declare
  seen "holdfast".lock%rowtype;
begin
  update "holdfast".lock l set owner = null, expires_at = least(l.expires_at, clock_timestamp())
  where l.tenant = the_tenant and l.resource = the_resource and l.owner = the_owner and l.token = coalesce(the_token, l.token)
  returning l.* into seen;
  if found then
    if seen.waited_until >= clock_timestamp() then
      perform pg_notify('holdfast_hint_d1580d2df7f24b6f5e2a861eba291875', "holdfast".lock_topic('persistent', the_tenant, the_resource));
    end if;
    return 'released';
  end if;
  perform from "holdfast".lock l
  where l.tenant = the_tenant and l.resource = the_resource and l.owner is null and l.token = the_token;
  return case when found then 'before' else 'lost' end;
end
$function$;

create or replace function holdfast.release_lock_ephemeral(the_tenant text, the_resource text, the_owner text, the_token bigint)
 RETURNS text
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
AS $function$
declare
  seen "holdfast".lock_ephemeral%rowtype;
begin
  update "holdfast".lock_ephemeral l set owner = null, expires_at = least(l.expires_at, clock_timestamp())
  where l.tenant = the_tenant and l.resource = the_resource and l.owner = the_owner and l.token = coalesce(the_token, l.token)
  returning l.* into seen;
  if found then
    if seen.waited_until >= clock_timestamp() then
      perform pg_notify('holdfast_hint_d1580d2df7f24b6f5e2a861eba291875', "holdfast".lock_topic('ephemeral', the_tenant, the_resource));
    end if;
    return 'released';
  end if;
  perform from "holdfast".lock_ephemeral l
  where l.tenant = the_tenant and l.resource = the_resource and l.owner is null and l.token = the_token;
  return case when found then 'before' else 'lost' end;
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

-- The whole schema, made from sql/migrations by scripts/dump-schema.mjs. Do not edit.

-- Functions come in the order of their names, and name each other.
set check_function_bodies = off;

create schema holdfast;

create sequence holdfast.audit_id_seq as bigint start 1 increment 1 cache 1;

create sequence holdfast.ephemeral_epoch_seq as bigint start 1 increment 1 cache 1;

create sequence holdfast.ephemeral_key_place_seq as bigint start 1 increment 1 cache 1;

create sequence holdfast.fencing_token_seq as bigint start 1 increment 1 cache 1;

create sequence holdfast.job_seq as bigint start 1 increment 1 cache 1;

create sequence holdfast.key_hold_id_seq as bigint start 1 increment 1 cache 1;

create sequence holdfast.key_place_seq as bigint start 1 increment 1 cache 1;

create sequence holdfast.key_watch_seq as bigint start 1 increment 1 cache 1;

create sequence holdfast.sequence_id_seq as bigint start 1 increment 1 cache 1;

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

create unlogged table holdfast.ephemeral_key_change (
  place bigint not null default nextval('holdfast.ephemeral_key_place_seq'::regclass),
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
) with (vacuum_truncate=false);

create unlogged table holdfast.ephemeral_key_log (
  only_row boolean not null default true,
  epoch bigint not null,
  trimmed_to bigint not null,
  trim_place bigint not null default '-1'::integer,
  constraint ephemeral_key_log_pkey PRIMARY KEY (only_row),
  constraint key_log_is_one_row CHECK (only_row)
);

create unlogged table holdfast.ephemeral_key_value (
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
) with (fillfactor=80, vacuum_truncate=false);

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
  place bigint not null default nextval('holdfast.key_place_seq'::regclass),
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
) with (vacuum_truncate=false);

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
  trim_place bigint not null default '-1'::integer, -- how far the log was looked through for what is not needed any more
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
) with (fillfactor=80, vacuum_truncate=false);

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

create table holdfast.lock (
  expires_at timestamp with time zone, -- held until then; null: never granted
  acquired_at timestamp with time zone,
  waited_until timestamp with time zone, -- so long somebody waits for it, and has to be told when it is free
  prune_at timestamp with time zone not null default (clock_timestamp() + '1 day'::interval), -- looked at then, whether it is still used
  token bigint default nextval('holdfast.fencing_token_seq'::regclass), -- of the newest grant, which sets it to its default
  tenant text collate "C" not null,
  resource text collate "C" not null,
  owner text collate "C", -- null: nobody's
  constraint lock_pkey PRIMARY KEY (tenant, resource)
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000, fillfactor=70, vacuum_truncate=false);

create unlogged table holdfast.lock_ephemeral (
  expires_at timestamp with time zone,
  acquired_at timestamp with time zone,
  waited_until timestamp with time zone,
  prune_at timestamp with time zone not null default (clock_timestamp() + '1 day'::interval),
  token bigint default nextval('holdfast.fencing_token_seq'::regclass),
  tenant text collate "C" not null,
  resource text collate "C" not null,
  owner text collate "C",
  constraint lock_ephemeral_pkey PRIMARY KEY (tenant, resource)
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000, fillfactor=70, vacuum_truncate=false);

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

create table holdfast.sequence (
  tenant text collate "C" not null,
  name text collate "C" not null,
  id bigint not null, -- of this creation: what was remembered before a deletion is nobody's
  current bigint not null, -- the value given last; before the first, `initial`
  increment bigint not null,
  max_value bigint,
  revision bigint not null default 0, -- how often values were drawn
  keyed bigint not null default 0, -- how often with an idempotency key
  initial bigint not null,
  created_at timestamp with time zone not null default clock_timestamp(),
  constraint sequence_pkey PRIMARY KEY (tenant, name),
  constraint sequence_grows CHECK ((increment > 0)),
  constraint sequence_is_within_max CHECK ((current <= max_value))
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000, fillfactor=50);

create table holdfast.sequence_request (
  sequence_id bigint not null,
  place bigint not null, -- the sequence's `keyed` when it was drawn
  first_value bigint not null,
  count bigint not null,
  drawn_at timestamp with time zone not null default clock_timestamp(),
  key text collate "C" not null,
  constraint sequence_request_pkey PRIMARY KEY (sequence_id, key)
) with (autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=1000);

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

create index lock_ephemeral_prune_idx ON holdfast.lock_ephemeral USING btree (prune_at);

create index lock_prune_idx ON holdfast.lock USING btree (prune_at);

create index parked_name_idx ON holdfast.parked USING btree (name, queue, priority, seq);

create index ready_claim_idx ON holdfast.ready USING btree (queue, priority, seq);

create index scheduled_due_idx ON holdfast.scheduled USING btree (run_at, job_id);

create index sequence_request_drawn_idx ON holdfast.sequence_request USING btree (drawn_at);

create index sequence_request_place_idx ON holdfast.sequence_request USING btree (sequence_id, place);

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
        insert into "holdfast".lock (tenant, resource, token) values (the_tenant, the_resource, null) on conflict do nothing;
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
      update "holdfast".lock l set owner = the_owner, token = default,
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
        insert into "holdfast".lock_ephemeral (tenant, resource, token) values (the_tenant, the_resource, null) on conflict do nothing;
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
      update "holdfast".lock_ephemeral l set owner = the_owner, token = default,
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

create or replace function holdfast.assert_lock(resource text, token bigint DEFAULT nextval('holdfast.fencing_token_seq'::regclass), tenant text DEFAULT ''::text, durability text DEFAULT 'persistent'::text)
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

create or replace function holdfast.check_key(key text, ttl_ms bigint)
 RETURNS void
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
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

create or replace function holdfast.create_sequence(tenant text, name text, initial bigint, increment bigint, max_value bigint, OUT is_new boolean, OUT known holdfast.sequence)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
AS $function$
begin
  -- Again if it is deleted between the two statements.
  loop
    insert into "holdfast".sequence as s (tenant, name, initial, current, increment, max_value)
    values (create_sequence.tenant, create_sequence.name, create_sequence.initial, create_sequence.initial,
      create_sequence.increment, create_sequence.max_value)
    on conflict on constraint sequence_pkey do nothing
    returning s.* into known;
    is_new := found;
    exit when found;
    select s.* into known from "holdfast".sequence s where s.tenant = create_sequence.tenant and s.name = create_sequence.name;
    exit when found;
  end loop;
end
$function$;

create or replace function holdfast.draw_values(tenant text, name text, count bigint, idempotency_key text, OUT status text, OUT first_value bigint, OUT last_value bigint, OUT increment bigint, OUT available bigint)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
AS $function$
declare
  own_id bigint;
  own_place bigint;
  remembered bigint;
begin
  if current_setting('synchronous_commit') = 'off' then perform set_config('synchronous_commit', 'on', true); end if;

  if idempotency_key is not null then
    select s.id, s.increment into own_id, increment
    from "holdfast".sequence s where s.tenant = draw_values.tenant and s.name = draw_values.name
    for no key update;
    if found then
      select r.first_value, r.count into first_value, remembered
      from "holdfast".sequence_request r
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
    update "holdfast".sequence s
    set current = s.current + s.increment::numeric * draw_values.count,
        revision = s.revision + 1,
        keyed = s.keyed + (idempotency_key is not null)::integer
    where s.tenant = draw_values.tenant and s.name = draw_values.name
      and draw_values.count <= (coalesce(s.max_value, 9223372036854775807)::numeric - s.current) / s.increment
    returning s.id, s.keyed, s.increment, s.current, s.current - s.increment::numeric * (draw_values.count - 1)
      into own_id, own_place, increment, last_value, first_value;
    exit when found;
    select trunc((coalesce(s.max_value, 9223372036854775807)::numeric - s.current) / s.increment)
      into available from "holdfast".sequence s where s.tenant = draw_values.tenant and s.name = draw_values.name;
    if not found or available < draw_values.count then
      status := case when found then 'exhausted' else 'not-found' end;
      return;
    end if;
  end loop;
  status := 'drawn';

  if idempotency_key is not null then
    delete from "holdfast".sequence_request r where r.sequence_id = own_id and r.place <= own_place - 256;
    insert into "holdfast".sequence_request as r (sequence_id, place, first_value, count, key)
    values (own_id, own_place, first_value, draw_values.count, idempotency_key)
    -- One of the key that is too old to count.
    on conflict on constraint sequence_request_pkey do update
      set place = excluded.place, first_value = excluded.first_value, count = excluded.count, drawn_at = excluded.drawn_at;
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

create or replace function holdfast.enter_key_log(ephemeral boolean)
 RETURNS boolean
 LANGUAGE sql
AS $function$
  select pg_catalog.pg_advisory_xact_lock_shared("holdfast".key_log_number(ephemeral), pg_catalog.floor(
    pg_catalog.date_part('epoch', pg_catalog.clock_timestamp()) operator(pg_catalog./) 60)::pg_catalog.int4) is not null
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
  epoch := nextval('"holdfast"."ephemeral_epoch_seq"') - 1;
  if epoch > 0 then perform setval('"holdfast"."ephemeral_key_place_seq"', epoch << 40); end if;
  insert into "holdfast".ephemeral_key_log (epoch, trimmed_to) values (epoch, epoch << 40);
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
      perform "holdfast".tell_lock_free('persistent', the_tenant, the_resource);
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
      perform "holdfast".tell_lock_free('ephemeral', the_tenant, the_resource);
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
    perform "holdfast".tell_lock_free('persistent', the_tenant, the_resource);
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
    perform "holdfast".tell_lock_free('ephemeral', the_tenant, the_resource);
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

create or replace function holdfast.key_bucket(tenant text, ephemeral boolean, bucket text, as_of_ms bigint)
 RETURNS TABLE(key text, value bytea, revision bigint, expires_at timestamp with time zone, modified_at timestamp with time zone)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
begin
  return query select r.* from "holdfast".key_range(key_bucket.tenant, key_bucket.ephemeral, key_bucket.bucket || '/', false, key_bucket.as_of_ms) r;
end
$function$;

create or replace function holdfast.key_bucket_lock(tenant text, ephemeral boolean, bucket text)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select hashtextextended(concat_ws(' ', 'holdfast', 'holdfast', ephemeral, length(tenant), tenant, '/' || bucket), 0)
$function$;

create or replace function holdfast.key_changes(tenant text, ephemeral boolean, low text, high text, depth integer, after bigint, gap_to bigint, gap_writers text[], seen pg_snapshot, max_places integer)
 RETURNS TABLE(place bigint, kind holdfast.key_change_kind, key text, value bytea, revision bigint, expires_at timestamp with time zone, changed_at timestamp with time zone, next_gap_to bigint, next_writers text[])
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
AS $function$
#variable_conflict use_column
declare
  waiting text[] := '{}';
  dead_to bigint := after;
  until bigint;
  top bigint;
  trimmed bigint;
begin
  if cardinality(gap_writers) > 0 then
    select array(select unnest(gap_writers) intersect select unnest(w.writers)) into waiting from "holdfast".key_writers(ephemeral) w;
  end if;
  if gap_to is not null and cardinality(waiting) = 0 then dead_to := gap_to; end if;
  if ephemeral then
  if seen is not null then
    until := case when cardinality(waiting) = 0 then gap_to else after end;
    top := gap_to;
  else
    select (array_agg(p.before order by p.place) filter (where p.place - p.before > 1 and p.place - 1 > dead_to))[1], max(p.place)
    into until, top from (
      select n.place, lag(n.place, 1, after) over (order by n.place) as before from (
        select c.place from "holdfast".ephemeral_key_change c where c.place > after order by c.place limit max_places
      ) n
    ) p;
    if until is null then
      until := coalesce(top, after);
      top := null;
    elsif cardinality(waiting) > 0 then
      top := gap_to;
    else
      select w.writers into waiting from "holdfast".key_writers(ephemeral) w;
    end if;
  end if;
  if until > after then
    return query select c.place, c.kind, c.key, c.value, c.revision, c.expires_at, c.changed_at, null::bigint, null::text[]
    from "holdfast".ephemeral_key_change c
    where c.place > after and c.place <= until and c.tenant = key_changes.tenant and c.key >= low and (high is null or c.key < high)
      and (depth is null or strpos(substr(c.key, depth + 1), '/') = 0)
      and (seen is null or not pg_visible_in_snapshot(c.xid, seen))
    order by c.place;
  end if;
  -- Read last: what was taken away meanwhile has raised it.
  select l.trimmed_to into trimmed from "holdfast".ephemeral_key_log l;
  return query select case when trimmed <= after or seen is not null and trimmed <= gap_to then until end, null::"holdfast".key_change_kind, null::text,
    null::bytea, null::bigint, null::timestamptz, null::timestamptz, top, waiting;
  else
  if seen is not null then
    until := case when cardinality(waiting) = 0 then gap_to else after end;
    top := gap_to;
  else
    select (array_agg(p.before order by p.place) filter (where p.place - p.before > 1 and p.place - 1 > dead_to))[1], max(p.place)
    into until, top from (
      select n.place, lag(n.place, 1, after) over (order by n.place) as before from (
        select c.place from "holdfast".key_change c where c.place > after order by c.place limit max_places
      ) n
    ) p;
    if until is null then
      until := coalesce(top, after);
      top := null;
    elsif cardinality(waiting) > 0 then
      top := gap_to;
    else
      select w.writers into waiting from "holdfast".key_writers(ephemeral) w;
    end if;
  end if;
  if until > after then
    return query select c.place, c.kind, c.key, c.value, c.revision, c.expires_at, c.changed_at, null::bigint, null::text[]
    from "holdfast".key_change c
    where c.place > after and c.place <= until and c.tenant = key_changes.tenant and c.key >= low and (high is null or c.key < high)
      and (depth is null or strpos(substr(c.key, depth + 1), '/') = 0)
      and (seen is null or not pg_visible_in_snapshot(c.xid, seen))
    order by c.place;
  end if;
  -- Read last: what was taken away meanwhile has raised it.
  select l.trimmed_to into trimmed from "holdfast".key_log l;
  return query select case when trimmed <= after or seen is not null and trimmed <= gap_to then until end, null::"holdfast".key_change_kind, null::text,
    null::bytea, null::bigint, null::timestamptz, null::timestamptz, top, waiting;
  end if;
end
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
begin
  if (octet_length(key) between 1 and 1024 and not starts_with(key, '__holdfast:')) is not true then perform "holdfast".check_key(key, 0); end if;
  if ephemeral then
  select k.revision, k.xid, k.modified_at, k.expires_at, k.deleted, k.norev, k.value into kv
  from "holdfast".ephemeral_key_value k where k.tenant = key_delete.tenant and k.key = key_delete.key for no key update;
  -- Also says that places are about to be drawn.
  at := case when "holdfast".enter_key_log(ephemeral) then clock_timestamp() end;
  if kv.revision is null or kv.deleted or kv.expires_at <= at or if_revision <> kv.revision or if_value <> kv.value then
    done := false;
    revision := coalesce(kv.revision, -1);
    return;
  end if;
  -- Of several values that a transaction gives a key, only the last is part of the history.
  if kv.xid = pg_current_xact_id() and not kv.norev then
    update "holdfast".ephemeral_key_change c set norev = true
    where c.tenant = key_delete.tenant and c.key = key_delete.key and c.revision = kv.revision and c.xid = kv.xid and not c.norev;
  end if;
  update "holdfast".ephemeral_key_value k set xid = pg_current_xact_id(), modified_at = greatest(at, k.modified_at), revision = k.revision + 1,
    expires_at = null, deleted = true, norev = false, value = ''
  where k.tenant = key_delete.tenant and k.key = key_delete.key
  returning true, k.revision into done, revision;
  insert into "holdfast".ephemeral_key_change (revision, xid, changed_at, modified_at, kind, norev, tenant, key)
  values (key_delete.revision, pg_current_xact_id(), greatest(at, kv.modified_at),
    greatest(at, kv.modified_at), 'deleted', false, key_delete.tenant, key_delete.key);
  else
  select k.revision, k.xid, k.modified_at, k.expires_at, k.deleted, k.norev, k.value into kv
  from "holdfast".key_value k where k.tenant = key_delete.tenant and k.key = key_delete.key for no key update;
  -- Also says that places are about to be drawn.
  at := case when "holdfast".enter_key_log(ephemeral) then clock_timestamp() end;
  if kv.revision is null or kv.deleted or kv.expires_at <= at or if_revision <> kv.revision or if_value <> kv.value then
    done := false;
    revision := coalesce(kv.revision, -1);
    return;
  end if;
  -- Of several values that a transaction gives a key, only the last is part of the history.
  if kv.xid = pg_current_xact_id() and not kv.norev then
    update "holdfast".key_change c set norev = true
    where c.tenant = key_delete.tenant and c.key = key_delete.key and c.revision = kv.revision and c.xid = kv.xid and not c.norev;
  end if;
  update "holdfast".key_value k set xid = pg_current_xact_id(), modified_at = greatest(at, k.modified_at), revision = k.revision + 1,
    expires_at = null, deleted = true, norev = false, value = ''
  where k.tenant = key_delete.tenant and k.key = key_delete.key
  returning true, k.revision into done, revision;
  insert into "holdfast".key_change (revision, xid, changed_at, modified_at, kind, norev, tenant, key)
  values (key_delete.revision, pg_current_xact_id(), greatest(at, kv.modified_at),
    greatest(at, kv.modified_at), 'deleted', false, key_delete.tenant, key_delete.key);
  end if;
  if "holdfast".key_is_watched() then
    perform "holdfast".tell_key_changed(tenant, ephemeral, key);
  end if;
end
$function$;

create or replace function holdfast.key_delete_many(tenant text, ephemeral boolean, items json)
 RETURNS TABLE(item bigint, done boolean, revision bigint)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  i record;
begin
  for i in select x.* from rows from (json_to_recordset(items) as (k text, ir bigint)) with ordinality x (k, ir, o)
    order by x.k collate "C", x.o
  loop
    return query select i.o, d.done, d.revision from "holdfast".key_delete(tenant, ephemeral, i.k, null, i.ir) d;
  end loop;
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
begin
  if (octet_length(key) between 1 and 1024 and not starts_with(key, '__holdfast:') and (ttl_ms > 0) is not false) is not true then
    perform "holdfast".check_key(key, 0);
    raise exception using errcode = 'HF001', message = 'ttl_ms: must be greater than 0; null is no expiry';
  end if;
  if ephemeral then
  select k.revision, k.modified_at, k.expires_at, k.deleted, k.norev, k.value into kv
  from "holdfast".ephemeral_key_value k where k.tenant = key_extend.tenant and k.key = key_extend.key for no key update;
  -- Also says that places are about to be drawn.
  at := case when "holdfast".enter_key_log(ephemeral) then clock_timestamp() end;
  if kv.revision is null or kv.deleted or kv.expires_at <= at then
    done := false;
    revision := coalesce(kv.revision, -1);
    return;
  end if;
  update "holdfast".ephemeral_key_value k set xid = pg_current_xact_id(), expires_at = at + ttl_ms * interval '1 millisecond'
  where k.tenant = key_extend.tenant and k.key = key_extend.key
  returning true, k.revision, k.expires_at into done, revision, expires_at;
  insert into "holdfast".ephemeral_key_change (revision, xid, changed_at, modified_at, expires_at, kind, norev, tenant, key, value)
  values (key_extend.revision, pg_current_xact_id(), greatest(at, kv.modified_at), kv.modified_at,
    key_extend.expires_at, 'extended', kv.norev, key_extend.tenant, key_extend.key, kv.value);
  else
  select k.revision, k.modified_at, k.expires_at, k.deleted, k.norev, k.value into kv
  from "holdfast".key_value k where k.tenant = key_extend.tenant and k.key = key_extend.key for no key update;
  -- Also says that places are about to be drawn.
  at := case when "holdfast".enter_key_log(ephemeral) then clock_timestamp() end;
  if kv.revision is null or kv.deleted or kv.expires_at <= at then
    done := false;
    revision := coalesce(kv.revision, -1);
    return;
  end if;
  update "holdfast".key_value k set xid = pg_current_xact_id(), expires_at = at + ttl_ms * interval '1 millisecond'
  where k.tenant = key_extend.tenant and k.key = key_extend.key
  returning true, k.revision, k.expires_at into done, revision, expires_at;
  insert into "holdfast".key_change (revision, xid, changed_at, modified_at, expires_at, kind, norev, tenant, key, value)
  values (key_extend.revision, pg_current_xact_id(), greatest(at, kv.modified_at), kv.modified_at,
    key_extend.expires_at, 'extended', kv.norev, key_extend.tenant, key_extend.key, kv.value);
  end if;
  if "holdfast".key_is_watched() then
    perform "holdfast".tell_key_changed(tenant, ephemeral, key);
  end if;
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

create or replace function holdfast.key_get_in_snapshot(tenant text, ephemeral boolean, key text, seen pg_snapshot, at_ms bigint, OUT found boolean, OUT value bytea, OUT revision bigint, OUT expires_at timestamp with time zone, OUT modified_at timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  answer alias for $6;
begin
  if ephemeral then
  select x.value, x.revision, x.expires_at, x.modified_at into value, revision, expires_at, modified_at from (
    select c.value, c.revision, c.expires_at, c.modified_at from "holdfast".ephemeral_key_change c
    where c.tenant = key_get_in_snapshot.tenant and c.key = key_get_in_snapshot.key and not c.norev
      and pg_visible_in_snapshot(c.xid, seen)
    order by c.revision desc, c.place desc limit 1
  ) x where x.value is not null and (x.expires_at > to_timestamp(at_ms / 1000.0)) is not false;
  else
  select x.value, x.revision, x.expires_at, x.modified_at into value, revision, expires_at, modified_at from (
    select c.value, c.revision, c.expires_at, c.modified_at from "holdfast".key_change c
    where c.tenant = key_get_in_snapshot.tenant and c.key = key_get_in_snapshot.key and not c.norev
      and pg_visible_in_snapshot(c.xid, seen)
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
      and not c.norev and c.value is not null
  ) x limit 1;
  else
  select x.value, x.revision, x.modified_at into value, revision, modified_at from (
    select k.value, k.revision, k.modified_at from "holdfast".key_value k
    where k.tenant = key_get_revision.tenant and k.key = key_get_revision.key and at_revision in (-1, k.revision)
      and not k.deleted and (k.expires_at > clock_timestamp()) is not false
    union all
    select c.value, c.revision, c.modified_at from "holdfast".key_change c
    where c.tenant = key_get_revision.tenant and c.key = key_get_revision.key and c.revision = at_revision
      and not c.norev and c.value is not null
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
  where k.tenant = key_guard.tenant and k.key >= bucket_or_prefix and k.key < high
  order by k.key for share;
  else
  perform from "holdfast".key_value k
  where k.tenant = key_guard.tenant and k.key >= bucket_or_prefix and k.key < high
  order by k.key for share;
  end if;
end
$function$;

create or replace function holdfast.key_increment(tenant text, ephemeral boolean, key text, by bigint, ttl_ms bigint, OUT problem text, OUT total bigint, OUT revision bigint, OUT expires_at timestamp with time zone, OUT modified_at timestamp with time zone)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  kept timestamptz;
  was bytea;
  number numeric := 0;
begin
  perform "holdfast".check_key(key, coalesce(ttl_ms, 0));
  perform "holdfast".key_lock(tenant, ephemeral, array[key], array[true]);
  if ephemeral then
  select k.value, k.expires_at, k.revision into was, kept, revision from "holdfast".ephemeral_key_value k
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
  select s.revision, s.expires_at, s.modified_at into revision, expires_at, modified_at from "holdfast".key_set(tenant, ephemeral, key,
    convert_to(total::text, 'UTF8'), case when was is null then ttl_ms end, null, null, null, null, null) s;
  if kept is not null then
    expires_at := kept;
    update "holdfast".ephemeral_key_value k set expires_at = kept where k.tenant = key_increment.tenant and k.key = key_increment.key;
    update "holdfast".ephemeral_key_change c set expires_at = kept where c.tenant = key_increment.tenant and c.key = key_increment.key
      and c.revision = key_increment.revision and not c.norev;
  end if;
  else
  select k.value, k.expires_at, k.revision into was, kept, revision from "holdfast".key_value k
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
  select s.revision, s.expires_at, s.modified_at into revision, expires_at, modified_at from "holdfast".key_set(tenant, ephemeral, key,
    convert_to(total::text, 'UTF8'), case when was is null then ttl_ms end, null, null, null, null, null) s;
  if kept is not null then
    expires_at := kept;
    update "holdfast".key_value k set expires_at = kept where k.tenant = key_increment.tenant and k.key = key_increment.key;
    update "holdfast".key_change c set expires_at = kept where c.tenant = key_increment.tenant and c.key = key_increment.key
      and c.revision = key_increment.revision and not c.norev;
  end if;
  end if;
end
$function$;

create or replace function holdfast.key_is_watched()
 RETURNS boolean
 LANGUAGE sql
AS $function$
  select pg_catalog.pg_sequence_last_value('"holdfast"."key_watch_seq"'::pg_catalog.regclass)
    operator(pg_catalog.>) pg_catalog.date_part('epoch', pg_catalog.clock_timestamp())
$function$;

create or replace function holdfast.key_lock(tenant text, ephemeral boolean, keys text[], writes boolean[], until timestamp with time zone DEFAULT NULL::timestamp with time zone)
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
      perform "holdfast".check_key(wanted.key, 0);
      perform "holdfast".enter_key_buckets(tenant, ephemeral, wanted.key);
      insert into "holdfast".ephemeral_key_value (revision, xid, modified_at, deleted, norev, tenant, key, value)
      values (-1, pg_current_xact_id(), '-infinity', true, true, key_lock.tenant, wanted.key, '') on conflict do nothing;
    end loop;
    if until is not null then
      perform set_config('lock_timeout', greatest(1, ceil(date_part('epoch', until - clock_timestamp()) * 1000))::text, true);
    end if;
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
      perform "holdfast".check_key(wanted.key, 0);
      perform "holdfast".enter_key_buckets(tenant, ephemeral, wanted.key);
      insert into "holdfast".key_value (revision, xid, modified_at, deleted, norev, tenant, key, value)
      values (-1, pg_current_xact_id(), '-infinity', true, true, key_lock.tenant, wanted.key, '') on conflict do nothing;
    end loop;
    if until is not null then
      perform set_config('lock_timeout', greatest(1, ceil(date_part('epoch', until - clock_timestamp()) * 1000))::text, true);
    end if;
  end loop;
  end if;
end
$function$;

create or replace function holdfast.key_log_number(ephemeral boolean)
 RETURNS integer
 LANGUAGE sql
 IMMUTABLE
AS $function$
  select pg_catalog.hashtext(case when ephemeral
    then 'holdfast ephemeral_keys '::pg_catalog.text operator(pg_catalog.||) 'holdfast'::pg_catalog.text
    else 'holdfast keys '::pg_catalog.text operator(pg_catalog.||) 'holdfast'::pg_catalog.text end)
$function$;

create or replace function holdfast.key_page(tenant text, ephemeral boolean, low text, above boolean, high text, depth integer, max_rows integer, seen pg_snapshot, at_ms bigint, exact boolean)
 RETURNS TABLE(key text, value bytea, revision bigint, expires_at timestamp with time zone, modified_at timestamp with time zone, seen_now text, now_ms bigint)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
AS $function$
#variable_conflict use_column
declare
  -- The end of the millisecond counts as it.
  at timestamptz := to_timestamp((at_ms + 1) / 1000.0);
  live timestamptz := to_timestamp(at_ms / 1000.0);
begin
  if high is null then high := "holdfast".key_prefix_end(''); end if;
  if ephemeral then
  if at_ms is null then
    return query with page as (
      select k.key, k.value, k.revision, k.expires_at, k.modified_at from "holdfast".ephemeral_key_value k
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
      from "holdfast".ephemeral_key_value k
      cross join lateral (
        select k.value, k.revision, k.expires_at, k.modified_at, k.deleted as gone
        where not exact and seen is not null
          and (pg_visible_in_snapshot(k.xid, seen) or k.xid = pg_current_xact_id_if_assigned())
        union all
        (select c.value, c.revision, c.expires_at, c.modified_at, c.value is null from "holdfast".ephemeral_key_change c
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
  else
  if at_ms is null then
    return query with page as (
      select k.key, k.value, k.revision, k.expires_at, k.modified_at from "holdfast".key_value k
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
      from "holdfast".key_value k
      cross join lateral (
        select k.value, k.revision, k.expires_at, k.modified_at, k.deleted as gone
        where not exact and seen is not null
          and (pg_visible_in_snapshot(k.xid, seen) or k.xid = pg_current_xact_id_if_assigned())
        union all
        (select c.value, c.revision, c.expires_at, c.modified_at, c.value is null from "holdfast".key_change c
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
  end if;
end
$function$;

create or replace function holdfast.key_prefix(tenant text, ephemeral boolean, prefix text, as_of_ms bigint)
 RETURNS TABLE(key text, value bytea, revision bigint, expires_at timestamp with time zone, modified_at timestamp with time zone)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
begin
  return query select r.* from "holdfast".key_range(key_prefix.tenant, key_prefix.ephemeral, key_prefix.prefix, true, key_prefix.as_of_ms) r;
end
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
  -- Above every key, which has 1,024 bytes at most.
  return repeat(chr(1114111), 257);
end
$function$;

create or replace function holdfast.key_range(tenant text, ephemeral boolean, prefix text, deep boolean, as_of_ms bigint)
 RETURNS TABLE(key text, value bytea, revision bigint, expires_at timestamp with time zone, modified_at timestamp with time zone)
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
AS $function$
#variable_conflict use_column
declare
  high text := "holdfast".key_prefix_end(prefix);
  skip integer := length(prefix) + 1;
begin
  if ephemeral then
  if as_of_ms is null then
    return query select k.key, k.value, k.revision, k.expires_at, k.modified_at from "holdfast".ephemeral_key_value k
      where k.tenant = key_range.tenant and k.key >= prefix and k.key < high
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
      where k.tenant = key_range.tenant and k.key >= prefix and k.key < high
        and (deep or strpos(substr(k.key, skip), '/') = 0)
        and x.value is not null and (x.expires_at > to_timestamp(as_of_ms / 1000.0)) is not false
      order by k.key;
  end if;
  else
  if as_of_ms is null then
    return query select k.key, k.value, k.revision, k.expires_at, k.modified_at from "holdfast".key_value k
      where k.tenant = key_range.tenant and k.key >= prefix and k.key < high
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
      where k.tenant = key_range.tenant and k.key >= prefix and k.key < high
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
    perform "holdfast".check_key(key, coalesce(ttl_ms, 0));
    value := coalesce(value, '');
  end if;
  if ephemeral then
  loop
    select k.revision, k.xid, k.modified_at, k.expires_at, k.deleted, k.norev, k.value into r, x, m, e, d, n, v
    from "holdfast".ephemeral_key_value k where k.tenant = key_set.tenant and k.key = key_set.key;
    -- Where time decides, it is read under the row's lock. Otherwise what was seen is checked by the update, and a refusal
    -- locks and writes nothing.
    if e is not null or ttl_ms > 0 then
      select k.revision, k.xid, k.modified_at, k.expires_at, k.deleted, k.norev, k.value into r, x, m, e, d, n, v
      from "holdfast".ephemeral_key_value k where k.tenant = key_set.tenant and k.key = key_set.key for no key update;
    end if;
    if r is null then
      if if_present or if_value <> '' or if_revision <> -1 then
        done := false;
        revision := -1;
        return;
      end if;
      perform "holdfast".enter_key_buckets(tenant, ephemeral, key);
      insert into "holdfast".ephemeral_key_value (revision, xid, modified_at, deleted, norev, tenant, key, value)
      values (-1, pg_current_xact_id(), '-infinity', true, true, key_set.tenant, key_set.key, '') on conflict do nothing;
      continue;
    end if;
    -- Also says that places are about to be drawn.
    at := case when "holdfast".enter_key_log(ephemeral) then clock_timestamp() end;
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
    revision := case when r >= 0 then r + 1 when ephemeral then "holdfast".ephemeral_epoch() << 40 else 0 end;
    modified_at := greatest(at, m);
    if ttl_ms > 0 then expires_at := at + ttl_ms * interval '1 millisecond'; end if;
    update "holdfast".ephemeral_key_value k set xid = pg_current_xact_id(), modified_at = key_set.modified_at, revision = key_set.revision,
      expires_at = key_set.expires_at, deleted = false, norev = key_set.norev is true, value = key_set.value
    where k.tenant = key_set.tenant and k.key = key_set.key and k.revision = r and k.xid = x;
    exit when found;
  end loop;
  -- Of several values that a transaction gives a key, only the last is part of the history.
  if x = pg_current_xact_id() and not n then
    update "holdfast".ephemeral_key_change c set norev = true
    where c.tenant = key_set.tenant and c.key = key_set.key and c.revision = r and c.xid = x and not c.norev;
  end if;
  insert into "holdfast".ephemeral_key_change (revision, xid, changed_at, modified_at, expires_at, kind, norev, tenant, key, value)
  values (key_set.revision, pg_current_xact_id(), key_set.modified_at, key_set.modified_at,
    key_set.expires_at, 'set', key_set.norev is true, key_set.tenant, key_set.key, key_set.value);
  else
  loop
    select k.revision, k.xid, k.modified_at, k.expires_at, k.deleted, k.norev, k.value into r, x, m, e, d, n, v
    from "holdfast".key_value k where k.tenant = key_set.tenant and k.key = key_set.key;
    -- Where time decides, it is read under the row's lock. Otherwise what was seen is checked by the update, and a refusal
    -- locks and writes nothing.
    if e is not null or ttl_ms > 0 then
      select k.revision, k.xid, k.modified_at, k.expires_at, k.deleted, k.norev, k.value into r, x, m, e, d, n, v
      from "holdfast".key_value k where k.tenant = key_set.tenant and k.key = key_set.key for no key update;
    end if;
    if r is null then
      if if_present or if_value <> '' or if_revision <> -1 then
        done := false;
        revision := -1;
        return;
      end if;
      perform "holdfast".enter_key_buckets(tenant, ephemeral, key);
      insert into "holdfast".key_value (revision, xid, modified_at, deleted, norev, tenant, key, value)
      values (-1, pg_current_xact_id(), '-infinity', true, true, key_set.tenant, key_set.key, '') on conflict do nothing;
      continue;
    end if;
    -- Also says that places are about to be drawn.
    at := case when "holdfast".enter_key_log(ephemeral) then clock_timestamp() end;
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
    revision := case when r >= 0 then r + 1 when ephemeral then "holdfast".ephemeral_epoch() << 40 else 0 end;
    modified_at := greatest(at, m);
    if ttl_ms > 0 then expires_at := at + ttl_ms * interval '1 millisecond'; end if;
    update "holdfast".key_value k set xid = pg_current_xact_id(), modified_at = key_set.modified_at, revision = key_set.revision,
      expires_at = key_set.expires_at, deleted = false, norev = key_set.norev is true, value = key_set.value
    where k.tenant = key_set.tenant and k.key = key_set.key and k.revision = r and k.xid = x;
    exit when found;
  end loop;
  -- Of several values that a transaction gives a key, only the last is part of the history.
  if x = pg_current_xact_id() and not n then
    update "holdfast".key_change c set norev = true
    where c.tenant = key_set.tenant and c.key = key_set.key and c.revision = r and c.xid = x and not c.norev;
  end if;
  insert into "holdfast".key_change (revision, xid, changed_at, modified_at, expires_at, kind, norev, tenant, key, value)
  values (key_set.revision, pg_current_xact_id(), key_set.modified_at, key_set.modified_at,
    key_set.expires_at, 'set', key_set.norev is true, key_set.tenant, key_set.key, key_set.value);
  end if;
  if "holdfast".key_is_watched() then
    perform "holdfast".tell_key_changed(tenant, ephemeral, key);
  end if;
  done := true;
  value_now := value;
end
$function$;

create or replace function holdfast.key_set_many(tenant text, ephemeral boolean, items json)
 RETURNS TABLE(item bigint, done boolean, revision bigint, value_now bytea, expires_at timestamp with time zone, modified_at timestamp with time zone)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  i record;
begin
  for i in select x.* from rows from (json_to_recordset(items) as
      (k text, v bytea, t bigint, a boolean, p boolean, iv bytea, ir bigint, n boolean)) with ordinality x (k, v, t, a, p, iv, ir, n, o)
    order by x.k collate "C", x.o
  loop
    return query select i.o, s.done, s.revision, s.value_now, s.expires_at, s.modified_at
      from "holdfast".key_set(tenant, ephemeral, i.k, i.v, i.t, i.a, i.p, i.iv, i.ir, i.n) s;
  end loop;
end
$function$;

create or replace function holdfast.key_sweep(ephemeral boolean, max_rows integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
AS $function$
#variable_conflict use_column
declare
  at timestamptz := clock_timestamp();
  swept integer;
  topics integer;
begin
  if ephemeral then
  perform "holdfast".enter_key_log(ephemeral);
  -- By ctid, and further down by an array: with few keys in its statistics, a join would go through all of the table.
  with gone as (
    update "holdfast".ephemeral_key_value k set deleted = true, value = '', xid = pg_current_xact_id()
    where k.expires_at <= at and k.ctid = any (array(
      select e.ctid from "holdfast".ephemeral_key_value e
      where not e.deleted and e.expires_at is not null and e.expires_at <= at
      order by e.expires_at limit max_rows for no key update skip locked))
    returning k.tenant, k.key, k.revision, k.expires_at, k.modified_at
  ), logged as (
    insert into "holdfast".ephemeral_key_change (revision, xid, changed_at, modified_at, expires_at, kind, norev, tenant, key)
    select g.revision, pg_current_xact_id(), greatest(at, g.modified_at), g.modified_at,
      g.expires_at, 'expired', true, g.tenant, g.key
    from gone g
    returning ephemeral_key_change.tenant, ephemeral_key_change.key
  )
  select count(*), count(*) filter (where exists (select from "holdfast".key_watcher w
    where w.expires_at > at and w.ephemeral = key_sweep.ephemeral and w.tenant = l.tenant and starts_with(l.key, w.prefix)))
  into swept, topics from logged l;
  else
  perform "holdfast".enter_key_log(ephemeral);
  -- By ctid, and further down by an array: with few keys in its statistics, a join would go through all of the table.
  with gone as (
    update "holdfast".key_value k set deleted = true, value = '', xid = pg_current_xact_id()
    where k.expires_at <= at and k.ctid = any (array(
      select e.ctid from "holdfast".key_value e
      where not e.deleted and e.expires_at is not null and e.expires_at <= at
      order by e.expires_at limit max_rows for no key update skip locked))
    returning k.tenant, k.key, k.revision, k.expires_at, k.modified_at
  ), logged as (
    insert into "holdfast".key_change (revision, xid, changed_at, modified_at, expires_at, kind, norev, tenant, key)
    select g.revision, pg_current_xact_id(), greatest(at, g.modified_at), g.modified_at,
      g.expires_at, 'expired', true, g.tenant, g.key
    from gone g
    returning key_change.tenant, key_change.key
  )
  select count(*), count(*) filter (where exists (select from "holdfast".key_watcher w
    where w.expires_at > at and w.ephemeral = key_sweep.ephemeral and w.tenant = l.tenant and starts_with(l.key, w.prefix)))
  into swept, topics from logged l;
  end if;
  if topics > 0 then perform pg_notify('holdfast_hint_d1580d2df7f24b6f5e2a861eba291875', 'keys'); end if;
  return swept;
end
$function$;

create or replace function holdfast.key_trim(ephemeral boolean, kept_days double precision, kept_changes integer, max_rows integer, watched interval DEFAULT '01:00:00'::interval)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
 SET enable_bitmapscan TO 'off'
 SET enable_sort TO 'off'
AS $function$
#variable_conflict use_column
declare
  from_place bigint;
  last_place bigint;
  looked integer;
  highest bigint;
  edge timestamptz := clock_timestamp() - watched;
begin
  if ephemeral then
  select l.trim_place into from_place from "holdfast".ephemeral_key_log l for update skip locked;
  if from_place is null then return 0; end if;
  delete from "holdfast".key_hold h where h.ephemeral = key_trim.ephemeral and h.expires_at < clock_timestamp() - interval '1 minute';
  with batch as (
    select c.place, c.norev, c.tenant, c.key, c.revision, c.changed_at from "holdfast".ephemeral_key_change c
    where c.place > from_place order by c.place limit max_rows
  ), old as (
    select b.* from batch b where b.changed_at < edge
  ), unneeded as (
    select o.place from old o where o.norev
    union all
    select o.place from old o
    cross join lateral (
      select n.changed_at, n.xid from "holdfast".ephemeral_key_change n
      where n.tenant = o.tenant and n.key = o.key and not n.norev and (n.revision, n.place) > (o.revision, o.place)
      order by n.revision, n.place limit 1
    ) next
    where not o.norev and next.changed_at < edge
      and (kept_days > 0 and next.changed_at < clock_timestamp() - kept_days * interval '1 day'
        or kept_changes > 0 and exists (
          select from "holdfast".ephemeral_key_change n
          where n.tenant = o.tenant and n.key = o.key and not n.norev and (n.revision, n.place) > (o.revision, o.place)
          order by n.revision, n.place offset kept_changes limit 1))
      and not exists (
        select from "holdfast".key_hold h where h.ephemeral = key_trim.ephemeral and h.tenant = o.tenant
          and h.expires_at > clock_timestamp()
          and case when h.is_exact then not pg_visible_in_snapshot(next.xid, h.held) else next.changed_at > h.held_at end)
  ), gone as (
    delete from "holdfast".ephemeral_key_change c where c.place = any (array(select u.place from unneeded u)) returning c.place
  )
  select (select count(*) from batch), (select max(b.place) from batch b), (select max(g.place) from gone g)
  into looked, last_place, highest;
  update "holdfast".ephemeral_key_log l set trim_place = case when looked < max_rows then -1 else last_place end,
    trimmed_to = greatest(l.trimmed_to, highest);
  else
  select l.trim_place into from_place from "holdfast".key_log l for update skip locked;
  if from_place is null then return 0; end if;
  delete from "holdfast".key_hold h where h.ephemeral = key_trim.ephemeral and h.expires_at < clock_timestamp() - interval '1 minute';
  with batch as (
    select c.place, c.norev, c.tenant, c.key, c.revision, c.changed_at from "holdfast".key_change c
    where c.place > from_place order by c.place limit max_rows
  ), old as (
    select b.* from batch b where b.changed_at < edge
  ), unneeded as (
    select o.place from old o where o.norev
    union all
    select o.place from old o
    cross join lateral (
      select n.changed_at, n.xid from "holdfast".key_change n
      where n.tenant = o.tenant and n.key = o.key and not n.norev and (n.revision, n.place) > (o.revision, o.place)
      order by n.revision, n.place limit 1
    ) next
    where not o.norev and next.changed_at < edge
      and (kept_days > 0 and next.changed_at < clock_timestamp() - kept_days * interval '1 day'
        or kept_changes > 0 and exists (
          select from "holdfast".key_change n
          where n.tenant = o.tenant and n.key = o.key and not n.norev and (n.revision, n.place) > (o.revision, o.place)
          order by n.revision, n.place offset kept_changes limit 1))
      and not exists (
        select from "holdfast".key_hold h where h.ephemeral = key_trim.ephemeral and h.tenant = o.tenant
          and h.expires_at > clock_timestamp()
          and case when h.is_exact then not pg_visible_in_snapshot(next.xid, h.held) else next.changed_at > h.held_at end)
  ), gone as (
    delete from "holdfast".key_change c where c.place = any (array(select u.place from unneeded u)) returning c.place
  )
  select (select count(*) from batch), (select max(b.place) from batch b), (select max(g.place) from gone g)
  into looked, last_place, highest;
  update "holdfast".key_log l set trim_place = case when looked < max_rows then -1 else last_place end,
    trimmed_to = greatest(l.trimmed_to, highest);
  end if;
  return looked;
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

create or replace function holdfast.key_watch_keep(watcher uuid, ephemeral boolean, tenant text, prefix text, ms integer)
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  until timestamptz := clock_timestamp() + ms * interval '1 millisecond';
begin
  insert into "holdfast".key_watcher (id, expires_at, ephemeral, tenant, prefix)
  values (watcher, until, key_watch_keep.ephemeral, key_watch_keep.tenant, key_watch_keep.prefix)
  on conflict (id) do update set expires_at = excluded.expires_at;
  perform setval('"holdfast"."key_watch_seq"', ceil(extract(epoch from until))::bigint)
  where coalesce(pg_sequence_last_value('"holdfast"."key_watch_seq"'), 0) < extract(epoch from until);
  delete from "holdfast".key_watcher w where w.id in (
    select o.id from "holdfast".key_watcher o where o.expires_at < clock_timestamp() - interval '1 minute' for update skip locked limit 100);
end
$function$;

create or replace function holdfast.key_watch_start(ephemeral boolean, OUT place bigint, OUT writers text[], OUT seen pg_snapshot, OUT floor bigint)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
declare
  since_minute integer;
begin
  if ephemeral then perform "holdfast".ephemeral_epoch(); end if;
  -- In this order: who has drawn a place up to it and is not among the writers has ended, and is seen.
  if ephemeral then
  select case when s.is_called then s.last_value else s.last_value - 1 end into place from "holdfast".ephemeral_key_place_seq s;
  select w.writers, w.since_minute into writers, since_minute from "holdfast".key_writers(ephemeral) w;
  seen := pg_current_snapshot();
  floor := place;
  if cardinality(writers) > 0 then
    select coalesce(max(c.place), -1) into floor from "holdfast".ephemeral_key_change c
    where c.place <= key_watch_start.place and c.changed_at < to_timestamp((since_minute - 2) * 60.0);
  end if;
  else
  select case when s.is_called then s.last_value else s.last_value - 1 end into place from "holdfast".key_place_seq s;
  select w.writers, w.since_minute into writers, since_minute from "holdfast".key_writers(ephemeral) w;
  seen := pg_current_snapshot();
  floor := place;
  if cardinality(writers) > 0 then
    select coalesce(max(c.place), -1) into floor from "holdfast".key_change c
    where c.place <= key_watch_start.place and c.changed_at < to_timestamp((since_minute - 2) * 60.0);
  end if;
  end if;
end
$function$;

create or replace function holdfast.key_writers(ephemeral boolean, OUT writers text[], OUT since_minute integer)
 RETURNS record
 LANGUAGE sql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select coalesce(array_agg(distinct l.virtualtransaction), '{}'), min(l.objid::bigint)::integer from pg_locks l
  where l.locktype = 'advisory' and l.objsubid = 2 and l.granted
    and l.database = (select d.oid from pg_database d where d.datname = current_database())
    and l.classid::bigint = ("holdfast".key_log_number(ephemeral)::bigint & 4294967295)
$function$;

create or replace function holdfast.lock_topic(durability text, tenant text, resource text)
 RETURNS text
 LANGUAGE sql
 STABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
  select 'lock:' || left(encode(sha256(convert_to(durability || chr(10) || tenant || chr(10) || resource, 'UTF8')), 'hex'), 32)
$function$;

create or replace function holdfast.next_value(name text, idempotency_key text DEFAULT NULL::text, tenant text DEFAULT ''::text)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  drawn record;
  request_key text := nullif(btrim(idempotency_key), '');
begin
  perform "holdfast".check_option('name', next_value.name is not null and "holdfast".is_name(next_value.name, 1024),
    'must be 1 to 1024 bytes, not blank, without control characters');
  perform "holdfast".check_option('tenant', coalesce(next_value.tenant = '' or "holdfast".is_name(next_value.tenant, 255), false),
    'must be at most 255 bytes, not blank, without control characters');
  perform "holdfast".check_option('idempotency_key', request_key is null or "holdfast".is_name(request_key, 1024),
    'must be 1 to 1024 bytes, without control characters');
  drawn := "holdfast".draw_values(next_value.tenant, btrim(next_value.name), 1, request_key);
  case drawn.status
    when 'not-found' then
      raise exception using errcode = 'HF011', message = format('there is no sequence "%s"', next_value.name),
        detail = next_value.name, hint = 'Check the name, or create it first.';
    when 'exhausted' then
      raise exception using errcode = 'HF012', message = format('the sequence "%s" has no more values', next_value.name),
        detail = next_value.name, hint = 'Delete it and create it anew with a larger maximum, or use another.';
    when 'other-count' then
      perform "holdfast".check_option('idempotency_key', false, 'belongs to a request for another count of values');
    else return drawn.first_value;
  end case;
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

create or replace function holdfast.prune_sequence_requests(max_rows integer DEFAULT 1000)
 RETURNS integer
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET enable_seqscan TO 'off'
AS $function$
  with past as (
    select r.sequence_id, r.key from "holdfast".sequence_request r where r.drawn_at < now() - interval '10 minutes'
    order by r.drawn_at limit max_rows for update skip locked
  ), gone as (
    delete from "holdfast".sequence_request r using past p where (r.sequence_id, r.key) = (p.sequence_id, p.key) returning 1
  )
  select count(*)::integer from gone
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
      perform "holdfast".tell_lock_free('persistent', the_tenant, the_resource);
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
      perform "holdfast".tell_lock_free('ephemeral', the_tenant, the_resource);
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

create or replace function holdfast.script_arithmetic(op integer, kind_a integer, a text, kind_b integer, b text, OUT kind integer, OUT val text)
 RETURNS record
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if kind_a = 4 and kind_b in (2, 3) then select n.kind, num into kind_a, a from "holdfast".script_number(a) n; end if;
  if kind_b = 4 and kind_a in (2, 3) then select n.kind, num into kind_b, b from "holdfast".script_number(b) n; end if;
  if (kind_a in (2, 3) and kind_b in (2, 3)) is not true then
    perform "holdfast".script_fail('operand-type', 'arithmetic');
  end if;
  if kind_a = 2 and kind_b = 2 then
    kind := 2;
    val := case op when 1 then a::bigint + b::bigint when 2 then a::bigint - b::bigint when 3 then a::bigint * b::bigint
      else a::bigint / b::bigint end;
  else
    kind := 3;
    val := "holdfast".script_float(op, a::float8, b::float8);
  end if;
end
$function$;

create or replace function holdfast.script_call(fn integer, kind_a integer, a text, kind_b integer, b text, OUT kind integer, OUT val text)
 RETURNS record
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET extra_float_digits TO '1'
AS $function$
declare
  x float8;
begin
  if fn <= 6 then                                                       -- numbers
    if kind_a not in (2, 3) or kind_b not in (2, 3) then perform "holdfast".script_fail('argument-type', fn::text); end if;
    kind := 3;
    if fn = 0 then
      kind := kind_a;
      val := case when kind_a = 2 then abs(a::bigint)::text else replace(abs(a::float8)::text, 'e', 'E') end;
    elsif fn in (1, 2) then
      if kind_a = 2 and kind_b = 2 then
        kind := 2;
        val := case fn when 1 then least(a::bigint, b::bigint) else greatest(a::bigint, b::bigint) end;
      elsif a = 'NaN' or b = 'NaN' then
        val := 'NaN';
      else
        val := replace((case fn when 1 then least(a::float8, b::float8) else greatest(a::float8, b::float8) end)::text, 'e', 'E');
      end if;
    elsif fn = 3 then
      val := "holdfast".script_float(5, a::float8, b::float8);
    elsif fn = 4 then
      val := replace(ceil(a::float8)::text, 'e', 'E');
    elsif fn = 5 then
      val := replace(floor(a::float8)::text, 'e', 'E');
    else
      if kind_b <> 2 then perform "holdfast".script_fail('argument-type', fn::text); end if;
      if b::bigint not between 0 and 15 then perform "holdfast".script_fail('number-range', 'round'); end if;
      x := a;
      -- Beyond that there are no digits behind the point to round.
      if abs(x) < 1e16 then x := round(x * 10.0::float8 ^ b::integer) / 10.0::float8 ^ b::integer; end if;
      val := replace(x::text, 'e', 'E');
    end if;
  elsif fn = 7 then                                                     -- to_int
    kind := 2;
    if kind_a = 2 then
      val := a;
    elsif kind_a = 1 then
      val := case a when 'true' then 1 else 0 end;
    elsif kind_a = 3 and a <> 'NaN' then
      x := trunc(a::float8);
      val := case when x >= 9223372036854775808 then 9223372036854775807
        when x < -9223372036854775808 then -9223372036854775808 else x::bigint end;
    elsif kind_a = 4 and a = '' then
      val := 0;
    else
      val := "holdfast".script_integer(kind_a, a, 'cast');
    end if;
  elsif fn = 8 then                                                     -- to_float
    kind := 3;
    if kind_a = 1 then
      val := case a when 'true' then 1 else 0 end;
    elsif kind_a in (2, 3) then
      val := replace(a::float8::text, 'e', 'E');
    elsif kind_a = 4 then
      select num into val from "holdfast".script_number(a);
      if a = '' then val := 0; end if;
      if val is not null then val := replace(val::float8::text, 'e', 'E'); end if;
    end if;
    if val is null then perform "holdfast".script_fail('cast', fn::text); end if;
  elsif fn = 9 then                                                     -- to_str
    if kind_a >= 5 then perform "holdfast".script_fail('cast', fn::text); end if;
    kind := 4;
    val := a;
  elsif fn = 10 then                                                    -- to_bool
    kind := 1;
    val := case kind_a when 1 then a when 2 then (a::bigint <> 0)::text when 3 then (a::float8 <> 0)::text
      when 4 then (lower(a collate "C") = 'true')::text end;
    if val is null then perform "holdfast".script_fail('cast', fn::text); end if;
  elsif fn <= 16 then                                                   -- is_int, is_float, is_str, is_bool, is_null, is_array
    kind := 1;
    val := case fn when 11 then kind_a = 2 when 12 then kind_a = 3 when 13 then kind_a = 4 when 14 then kind_a = 1
      when 15 then kind_a = 0 else kind_a >= 5 end;
  elsif fn = 17 then                                                    -- to_json
    kind := 4;
    val := "holdfast".script_json(kind_a, a);
  elsif fn <= 21 then                                                   -- concat, upper, lower, len
    if kind_a <> 4 or kind_b <> 4 then perform "holdfast".script_fail('argument-type', fn::text); end if;
    kind := 4;
    if fn = 18 then
      if octet_length(a) + octet_length(b) > 16777216 then perform "holdfast".script_fail('too-large', 'text'); end if;
      val := a || b;
    elsif fn in (19, 20) then
      -- ASCII here; the other letters by the table that the library sends: letters, then what each becomes.
      val := case fn when 19 then upper(a collate "C") else lower(a collate "C") end;
      if octet_length(a) > length(a) then
        val := translate(val, left(b, length(b) / 2), right(b, length(b) / 2));
      end if;
    else
      -- UTF-16 units: one more for each character that has four bytes in UTF-8.
      kind := 2;
      val := length(a) + case when octet_length(a) = length(a) then 0
        else length(regexp_replace(a, E'[\\u0001-\\uffff]', '', 'g')) end;
    end if;
  else                                                                  -- current_time
    kind := 2;
    val := floor(extract(epoch from clock_timestamp()) * 1000)::bigint;
  end if;
end
$function$;

create or replace function holdfast.script_compare(op integer, kind_a integer, a text, kind_b integer, b text)
 RETURNS boolean
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  difference integer;
begin
  if op >= 5 then
    if kind_a = 0 or kind_b = 0 then return (kind_a = kind_b) = (op = 5); end if;
    if kind_a = kind_b and kind_a in (1, 4) then return (a = b collate "C") = (op = 5); end if;
  end if;
  if kind_a = 4 and kind_b in (2, 3) then select n.kind, num into kind_a, a from "holdfast".script_number(a) n; end if;
  if kind_b = 4 and kind_a in (2, 3) then select n.kind, num into kind_b, b from "holdfast".script_number(b) n; end if;
  if (kind_a in (2, 3) and kind_b in (2, 3)) is not true then
    perform "holdfast".script_fail('operand-type', case when op >= 5 then 'equality' else 'order' end);
  end if;
  if kind_a = 2 and kind_b = 2 then
    difference := case when a::bigint < b::bigint then -1 when a::bigint = b::bigint then 0 else 1 end;
  elsif kind_a = 2 then
    difference := "holdfast".script_compare_mixed(a::bigint, b::float8);
  elsif kind_b = 2 then
    difference := -"holdfast".script_compare_mixed(b::bigint, a::float8);
  elsif a::float8 <> 'NaN' and b::float8 <> 'NaN' then
    difference := case when a::float8 < b::float8 then -1 when a::float8 = b::float8 then 0 else 1 end;
  end if;
  return case op
    when 1 then difference = -1
    when 2 then difference <> 1
    when 3 then difference = 1
    when 4 then difference <> -1
    when 5 then difference = 0
    else difference <> 0
  end is not false and (op in (2, 4, 6) or difference is not null);
end
$function$;

create or replace function holdfast.script_compare_mixed(a bigint, b double precision)
 RETURNS integer
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if b = 'NaN' then return null; end if;
  if b >= 9223372036854775808 then return -1; end if;
  if b < -9223372036854775808 then return 1; end if;
  if a <> trunc(b)::bigint then return sign(a - trunc(b)::bigint::numeric); end if;
  return sign(trunc(b) - b);
end
$function$;

create or replace function holdfast.script_fail(reason text, detail text DEFAULT NULL::text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  raise exception using errcode = 'HF100', message = reason, detail = coalesce(detail, '');
end
$function$;

create or replace function holdfast.script_float(op integer, a double precision, b double precision)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET extra_float_digits TO '1'
AS $function$
declare
  negative boolean := (a < 0) <> (b < 0);
  answer float8;
begin
  if a = 'NaN' or b = 'NaN' then return 'NaN'; end if;
  if op = 4 and b = 0 then
    if a = 0 then return 'NaN'; end if;
    return case when (a < 0) <> (b::text = '-0') then '-Infinity' else 'Infinity' end;
  end if;
  answer := case op when 1 then a + b when 2 then a - b when 3 then a * b when 4 then a / b else power(a, b) end;
  return replace(answer::text, 'e', 'E');
exception
  when numeric_value_out_of_range then
    if op = 5 then
      if (b > 0) <> (abs(a) > 1) then return '0'; end if;
      return case when a < 0 and b - 2 * trunc(b / 2) <> 0 then '-Infinity' else 'Infinity' end;
    end if;
    if op in (3, 4) and (ln(abs(a)) + case op when 3 then ln(abs(b)) else -ln(abs(b)) end < 0) then return '0'; end if;
    return case when case when op in (1, 2) then a < 0 else negative end then '-Infinity' else 'Infinity' end;
  when invalid_argument_for_power_function then
    return case when a = 0 then 'Infinity' else 'NaN' end;
end
$function$;

create or replace function holdfast.script_instant(kind integer, val text)
 RETURNS bigint
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  instant bigint := "holdfast".script_integer(kind, val, 'number-format');
begin
  if instant not between 1 and 253402300799999 then perform "holdfast".script_fail('invalid-input', 'instant'); end if;
  return instant;
end
$function$;

create or replace function holdfast.script_integer(kind integer, val text, reason text)
 RETURNS bigint
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if kind = 2 then return val::bigint; end if;
  if kind = 4 and btrim(val, E' \t\n\r\f\v') ~ '^[+-]?[0-9]+$' then return btrim(val, E' \t\n\r\f\v')::bigint; end if;
  perform "holdfast".script_fail(reason);
end
$function$;

create or replace function holdfast.script_json(kind integer, val text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  if kind = 0 then return 'null'; end if;
  if kind in (1, 2) then return val; end if;
  if kind = 4 then return "holdfast".script_json_text(val); end if;
  -- JSON has no infinity, and no number that is not one.
  if kind <> 3 or val in ('NaN', 'Infinity', '-Infinity') then perform "holdfast".script_fail('argument-type', 'to_json'); end if;
  return val;
end
$function$;

create or replace function holdfast.script_json_text(val text)
 RETURNS text
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  quoted text := to_json(val)::text;
begin
  quoted := substr(quoted, 2, length(quoted) - 2);
  if quoted ~ E'[^ -~]|[\\x7f"''&+<>`]' then
    select string_agg(case
        when c in ('"', '''', '&', '+', '<', '>', '`') or ascii(c) = 127 or ascii(c) between 128 and 65535
          then E'\\u' || lpad(upper(to_hex(ascii(c))), 4, '0')
        when ascii(c) > 65535
          then E'\\u' || upper(to_hex(55296 + ((ascii(c) - 65536) >> 10))) || E'\\u' || upper(to_hex(56320 + ((ascii(c) - 65536) & 1023)))
        else c end, '' order by n)
      into quoted
      from regexp_split_to_table(replace(quoted, E'\\"', '"'), '') with ordinality as x (c, n);
  end if;
  return '"' || coalesce(quoted, '') || '"';
end
$function$;

create or replace function holdfast.script_number(val text, OUT kind integer, OUT num text)
 RETURNS record
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
 SET extra_float_digits TO '1'
AS $function$
declare
  trimmed text := btrim(val, E' \t\n\r\f\v');
begin
  if trimmed ~ '^[+-]?[0-9]+$' then
    kind := 2;
    num := trimmed::bigint;
  elsif trimmed ~* '^[+-]?([0-9][0-9,]*[.]?[0-9]*|[.][0-9]+)(e[+-]?[0-9]+)?$' or trimmed ~* '^([+-]?infinity|nan)$' then
    kind := 3;
    num := replace(replace(trimmed, ',', '')::float8::text, 'e', 'E');
  end if;
end
$function$;

create or replace function holdfast.script_run(tenant text, code integer[], kinds integer[], vals text[], keys text[], lock_names text[], lock_modes integer[], lock_writes boolean[], lock_wait_ms integer, timeout_ms integer, in_transaction boolean, OUT reason text, OUT detail text, OUT at integer, OUT answer integer, OUT key text, OUT value text, OUT revision bigint, OUT expires_at bigint, OUT modified_at bigint, OUT items text)
 RETURNS record
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_variable
declare
  -- Registers. 1 is what a `return` gave.
  revs bigint[] := '{}';
  exps bigint[] := '{}';
  -- Items of arrays.
  heap_kinds integer[] := '{}';
  heap_vals text[] := '{}';
  heap_revs bigint[] := '{}';
  heap_exps bigint[] := '{}';
  heap_keys text[] := '{}';
  heap_times bigint[] := '{}';
  heap_size integer := 0;
  pc integer := 1;
  op integer;
  a integer;
  b integer;
  c integer;
  d integer;
  kind_a integer;
  kind_b integer;
  flags integer;
  number bigint;
  made text;
  count integer;
  steps integer := 0;
  truth boolean;
  -- The newest answer: 1 set 2 notset 3 get 4 exists 5 doesnotexist 6 deleted 7 extended; and that of the newest write.
  written integer;
  from_register boolean := false;
  bytes bytea;
  found_revision bigint;
  expires timestamptz;
  modified timestamptz;
  done boolean;
  found_key integer;
  listing text;
  started timestamptz := clock_timestamp();
  deadline timestamptz := started + timeout_ms * interval '1 millisecond';
  -- 0 would be no limit.
  wait integer := greatest(1, least(lock_wait_ms, timeout_ms));
  patience timestamptz := started + wait * interval '1 millisecond';
  persistent integer := 0;                 -- locks: the persistent ones come first
  old_wait text := current_setting('lock_timeout');
  failure text;
begin
  answer := 0;
  begin
    perform set_config('lock_timeout', wait::text, true);
    kinds := array_replace(kinds, -1, null);

    if lock_names is not null then
      a := 1;
      while a <= cardinality(lock_names) loop
        b := a;
        if lock_modes[a] & 2 > 0 then
          perform "holdfast".key_guard(tenant, lock_modes[a] & 1 > 0, lock_names[a]);
        else
          while lock_modes[b + 1] = lock_modes[a] loop b := b + 1; end loop;
          perform "holdfast".key_lock(tenant, lock_modes[a] & 1 > 0, lock_names[a : b], lock_writes[a : b], patience);
        end if;
        if lock_modes[a] & 1 = 0 then persistent := b; end if;
        a := b + 1;
        if a <= cardinality(lock_names) then
          perform set_config('lock_timeout',
            greatest(1, ceil(date_part('epoch', patience - clock_timestamp()) * 1000))::text, true);
        end if;
      end loop;
    end if;

    loop
      op := code[pc];
      -- What no register holds any more makes room before new items come.
      if heap_size > 50000 and op in (19, 21) then
        declare
          old_kinds integer[] := heap_kinds;
          old_vals text[] := heap_vals;
          old_revs bigint[] := heap_revs;
          old_exps bigint[] := heap_exps;
          old_keys text[] := heap_keys;
          old_times bigint[] := heap_times;
          low integer;
          high integer;
        begin
          heap_kinds := '{}';
          heap_vals := '{}';
          heap_revs := '{}';
          heap_exps := '{}';
          heap_keys := '{}';
          heap_times := '{}';
          heap_size := 0;
          for i in 1..cardinality(kinds) loop
            if kinds[i] = 5 and i <> code[pc + 1] then
              low := revs[i];
              high := revs[i] + exps[i] - 1;
              heap_kinds := heap_kinds || old_kinds[low : high];
              heap_vals := heap_vals || old_vals[low : high];
              heap_revs := heap_revs || old_revs[low : high];
              heap_exps := heap_exps || old_exps[low : high];
              heap_keys := heap_keys || old_keys[low : high];
              heap_times := heap_times || old_times[low : high];
              revs[i] := heap_size + 1;
              heap_size := heap_size + exps[i];
            end if;
          end loop;
        end;
      end if;
      if op < 10 then
        if op < 5 then
          if op < 3 then
            if op = 1 then                                              -- GET d key flags (1 ephemeral, 2 inside an expression)
              if clock_timestamp() > deadline then perform "holdfast".script_fail('abort:timeout'); end if;
              a := code[pc + 1];
              flags := code[pc + 3];
              made := keys[code[pc + 2]];
              -- As `key_get`, whose call would cost as much again.
              if flags & 1 = 0 then
                select k.value, k.revision, k.expires_at, k.modified_at into bytes, found_revision, expires, modified
                from "holdfast".key_value k
                where k.tenant = script_run.tenant and k.key = made and not k.deleted and (k.expires_at > clock_timestamp()) is not false;
              else
                select k.value, k.revision, k.expires_at, k.modified_at into bytes, found_revision, expires, modified
                from "holdfast".ephemeral_key_value k
                where k.tenant = script_run.tenant and k.key = made and not k.deleted and (k.expires_at > clock_timestamp()) is not false;
              end if;
              done := found;
              if not done then found_revision := -1; end if;
              if a > 0 then
                if done then
                  kinds[a] := 4;
                  vals[a] := convert_from(bytes, 'UTF8');
                  revs[a] := found_revision;
                  exps[a] := floor(extract(epoch from expires) * 1000);
                else
                  kinds[a] := 0;
                  vals[a] := '';
                  revs[a] := null;
                  exps[a] := null;
                end if;
              end if;
              if flags & 2 = 0 then
                answer := case when done then 3 else 5 end;
                from_register := false;
                found_key := code[pc + 2];
              end if;
              pc := pc + 4;
            else                                                        -- SET d key flags value ttl cmp cmprev
              if clock_timestamp() > deadline then perform "holdfast".script_fail('abort:timeout'); end if;
              a := code[pc + 4];
              flags := code[pc + 3];
              if (kinds[a] < 5) is not true then
                perform "holdfast".script_fail(case when kinds[a] is null then 'undefined' else 'array-not-storable' end, a::text);
              end if;
              if flags < 2 then
                select s.done, s.revision, s.expires_at, s.modified_at into done, found_revision, expires, modified
                  from "holdfast".key_set(tenant, flags & 1 > 0, keys[code[pc + 2]], convert_to(vals[a], 'UTF8'),
                    null, false, false, null, null, false) s;
              else                                                      -- 1 ephemeral 2 nx 4 xx 8 norev 16 ttl 32 cmp 64 cmprev
                for i in 5..7 loop
                  b := code[pc + i];
                  if b > 0 and (kinds[b] < 5) is not true then
                    perform "holdfast".script_fail(
                      case when kinds[b] is null then 'undefined' when i = 6 then 'array-not-storable' when i = 5 then 'bad-expiry'
                        else 'number-format' end, b::text);
                  end if;
                end loop;
                select s.done, s.revision, s.expires_at, s.modified_at into done, found_revision, expires, modified
                  from "holdfast".key_set(tenant, flags & 1 > 0, keys[code[pc + 2]], convert_to(vals[a], 'UTF8'),
                    case when flags & 16 > 0 then "holdfast".script_ttl(kinds[code[pc + 5]], vals[code[pc + 5]]) end,
                    flags & 2 > 0, flags & 4 > 0,
                    case when flags & 32 > 0 then convert_to(vals[code[pc + 6]], 'UTF8') end,
                    case when flags & 64 > 0 then "holdfast".script_integer(kinds[code[pc + 7]], vals[code[pc + 7]], 'number-format') end,
                    flags & 8 > 0) s;
              end if;
              answer := case when done then 1 else 2 end;
              written := answer;
              from_register := false;
              bytes := null;
              found_key := code[pc + 2];
              a := code[pc + 1];
              if a > 0 then
                kinds[a] := 1;
                vals[a] := done;
              end if;
              pc := pc + 8;
            end if;
          else
            if op = 3 then                                              -- IFNOT r target
              a := code[pc + 1];
              if kinds[a] is null then perform "holdfast".script_fail('undefined', a::text); end if;
              if kinds[a] = 1 and vals[a] = 'true' then
                pc := pc + 3;
              else
                pc := code[pc + 2];
              end if;
            else                                                        -- 4 COMPARE d op a b
              a := code[pc + 3];
              b := code[pc + 4];
              c := code[pc + 2];
              kind_a := kinds[a];
              kind_b := kinds[b];
              if kind_a = 2 and kind_b = 2 then
                number := vals[a]::bigint;
                truth := case c when 1 then number < vals[b]::bigint when 2 then number <= vals[b]::bigint
                  when 3 then number > vals[b]::bigint when 4 then number >= vals[b]::bigint
                  when 5 then number = vals[b]::bigint else number <> vals[b]::bigint end;
              elsif c >= 5 and kind_a = 4 and kind_b = 4 then
                truth := (vals[a] = vals[b] collate "C") = (c = 5);
              elsif kind_a is null or kind_b is null then
                perform "holdfast".script_fail('undefined', case when kind_a is null then a else b end::text);
              elsif c >= 5 and (kind_a = 0 or kind_b = 0) then
                truth := (kind_a = kind_b) = (c = 5);
              else
                truth := "holdfast".script_compare(c, kind_a, vals[a], kind_b, vals[b]);
              end if;
              d := code[pc + 1];
              kinds[d] := 1;
              vals[d] := truth;
              pc := pc + 5;
            end if;
          end if;
        elsif op < 7 then
          if op = 5 then                                                -- ARITHMETIC d op a b
            a := code[pc + 3];
            b := code[pc + 4];
            c := code[pc + 2];
            d := code[pc + 1];
            kind_a := kinds[a];
            kind_b := kinds[b];
            if kind_a = 2 and (kind_b = 2 or kind_b = 4 and vals[b] ~ '^[0-9]{1,18}$')
              or kind_b = 2 and kind_a = 4 and vals[a] ~ '^[0-9]{1,18}$' then
              kinds[d] := 2;
              vals[d] := case c when 1 then vals[a]::bigint + vals[b]::bigint when 2 then vals[a]::bigint - vals[b]::bigint
                when 3 then vals[a]::bigint * vals[b]::bigint else vals[a]::bigint / vals[b]::bigint end;
            else
              if kind_a is null or kind_b is null then
                perform "holdfast".script_fail('undefined', case when kind_a is null then a else b end::text);
              end if;
              select r.kind, r.val into kind_a, made from "holdfast".script_arithmetic(c, kind_a, vals[a], kind_b, vals[b]) r;
              kinds[d] := kind_a;
              vals[d] := made;
            end if;
            pc := pc + 5;
          else                                                          -- 6 MOVE d a
            a := code[pc + 2];
            d := code[pc + 1];
            if kinds[a] is null then perform "holdfast".script_fail('undefined', a::text); end if;
            kinds[d] := kinds[a];
            vals[d] := vals[a];
            revs[d] := revs[a];
            exps[d] := exps[a];
            pc := pc + 3;
          end if;
        elsif op = 7 then                                               -- CALL d fn a b
          a := code[pc + 3];
          b := code[pc + 4];
          c := code[pc + 2];
          d := code[pc + 1];
          if a > 0 and kinds[a] is null then perform "holdfast".script_fail('undefined', a::text); end if;
          if b > 0 and kinds[b] is null then perform "holdfast".script_fail('undefined', b::text); end if;
          if c = 7 and (kinds[a] = 2 or kinds[a] = 4 and vals[a] ~ '^[0-9]{1,18}$') then  -- to_int, mostly
            kinds[d] := 2;
            vals[d] := vals[a]::bigint;
          elsif c in (22, 23, 24) then                                  -- count, rev, expires
            number := revs[a];
            kind_a := kinds[a];
            if c = 22 and kind_a < 5 then perform "holdfast".script_fail('argument-type', c::text); end if;
            kinds[d] := 2;
            if c = 22 then
              vals[d] := case kind_a when 5 then exps[a] when 6 then greatest(exps[a]::numeric - number + 1, 0) end;
            elsif kind_a >= 5 then
              vals[d] := case c when 23 then -1 else 0 end;
            elsif c = 23 then
              -- The revision carries itself.
              vals[d] := coalesce(number, -1);
              revs[d] := number;
              exps[d] := null;
            else
              vals[d] := coalesce(exps[a], 0);
            end if;
          else
            select r.kind, r.val into kind_a, made from "holdfast".script_call(c, kinds[a], vals[a], kinds[b], vals[b]) r;
            kinds[d] := kind_a;
            vals[d] := made;
          end if;
          pc := pc + 5;
        elsif op = 8 then                                               -- JUMP target
          pc := code[pc + 1];
        else                                                            -- 9 RETURN a (0: nothing)
          a := code[pc + 1];
          if a > 0 then
            if kinds[a] is null then perform "holdfast".script_fail('undefined', a::text); end if;
            kinds[1] := kinds[a];
            vals[1] := vals[a];
            revs[1] := revs[a];
            exps[1] := exps[a];
            answer := 3;
            from_register := true;
          end if;
          pc := pc + 2;
        end if;
      elsif op < 20 then
        if op < 14 then
          if op = 10 then                                               -- END
            exit;
          elsif op = 11 then                                            -- NOT d a
            a := code[pc + 2];
            d := code[pc + 1];
            kind_a := kinds[a];
            if kind_a is null then perform "holdfast".script_fail('undefined', a::text); end if;
            if kind_a >= 5 then perform "holdfast".script_fail('operand-type', 'not'); end if;
            vals[d] := case kind_a when 0 then true when 1 then vals[a] <> 'true' when 4 then false else vals[a]::float8 = 0 end;
            kinds[d] := 1;
            pc := pc + 3;
          elsif op = 12 then                                            -- AND, OR: d which a target; a alone decides, or go on
            a := code[pc + 3];
            d := code[pc + 1];
            kind_a := kinds[a];
            if kind_a is null then perform "holdfast".script_fail('undefined', a::text); end if;
            if kind_a not in (1, 2, 3) then perform "holdfast".script_fail('operand-type', 'logic'); end if;
            truth := case kind_a when 1 then vals[a] = 'true' else vals[a]::float8 <> 0 end;
            if truth = (code[pc + 2] = 2) then
              kinds[d] := 1;
              vals[d] := truth;
              pc := code[pc + 4];
            else
              pc := pc + 5;
            end if;
          else                                                          -- 13 LOGIC d a b: b decides; a told its kind
            a := code[pc + 2];
            b := code[pc + 3];
            d := code[pc + 1];
            kind_b := kinds[b];
            if kind_b is null then perform "holdfast".script_fail('undefined', b::text); end if;
            if kind_b not in (1, 2, 3) or (kinds[a] = 1) <> (kind_b = 1) then
              perform "holdfast".script_fail('operand-type', 'logic');
            end if;
            vals[d] := case kind_b when 1 then vals[b] = 'true' else vals[b]::float8 <> 0 end;
            kinds[d] := 1;
            pc := pc + 4;
          end if;
        elsif op < 17 then
          if op = 14 then                                               -- NEGATE d a
            a := code[pc + 2];
            d := code[pc + 1];
            if kinds[a] is null then perform "holdfast".script_fail('undefined', a::text); end if;
            select r.kind, r.val into kind_a, made
              from "holdfast".script_arithmetic(case kinds[a] when 3 then 3 else 2 end, 2, case kinds[a] when 3 then '-1' else '0' end,
                kinds[a], vals[a]) r;
            kinds[d] := kind_a;
            vals[d] := made;
            pc := pc + 3;
          elsif op = 15 then                                            -- RANGE d a b
            a := code[pc + 2];
            b := code[pc + 3];
            d := code[pc + 1];
            if kinds[a] is null or kinds[b] is null then
              perform "holdfast".script_fail('undefined', case when kinds[a] is null then a else b end::text);
            end if;
            if kinds[a] <> 2 or kinds[b] <> 2 then perform "holdfast".script_fail('operand-type', 'range'); end if;
            kinds[d] := 6;
            revs[d] := vals[a];
            exps[d] := vals[b];
            vals[d] := '';
            pc := pc + 4;
          else                                                          -- 16 INDEX d a i
            a := code[pc + 2];
            b := code[pc + 3];
            d := code[pc + 1];
            if kinds[a] is null or kinds[b] is null then
              perform "holdfast".script_fail('undefined', case when kinds[a] is null then a else b end::text);
            end if;
            if kinds[a] < 5 or kinds[b] <> 2 or length(vals[b]) > 9 then perform "holdfast".script_fail('bad-index'); end if;
            c := vals[b];
            if kinds[a] = 6 then
              if c < 0 or revs[a] > exps[a] or exps[a]::numeric - revs[a] < c then perform "holdfast".script_fail('bad-index'); end if;
              kinds[d] := 2;
              vals[d] := revs[a] + c;
              revs[d] := null;
              exps[d] := null;
            else
              if c < 0 or c >= exps[a] then perform "holdfast".script_fail('bad-index'); end if;
              c := c + revs[a];
              kinds[d] := heap_kinds[c];
              vals[d] := heap_vals[c];
              revs[d] := heap_revs[c];
              exps[d] := heap_exps[c];
            end if;
            pc := pc + 4;
          end if;
        elsif op = 17 then                                              -- FOR s a: prepares the loop register
          a := code[pc + 2];
          d := code[pc + 1];
          if kinds[a] is null then perform "holdfast".script_fail('undefined', a::text); end if;
          if kinds[a] < 5 then perform "holdfast".script_fail('not-iterable'); end if;
          kinds[d] := kinds[a];
          vals[d] := '';
          revs[d] := revs[a];
          exps[d] := exps[a];
          pc := pc + 3;
        elsif op = 18 then                                              -- NEXT v s target cost: the next item, or on to target
          a := code[pc + 2];
          d := code[pc + 1];
          steps := steps + code[pc + 4];
          if steps > 1000000 then perform "holdfast".script_fail('too-many-steps'); end if;
          if clock_timestamp() > deadline then perform "holdfast".script_fail('abort:timeout'); end if;
          number := revs[a];
          if kinds[a] = 5 then
            if exps[a] = 0 then
              pc := code[pc + 3];
            else
              kinds[d] := heap_kinds[number];
              vals[d] := heap_vals[number];
              revs[d] := heap_revs[number];
              exps[d] := heap_exps[number];
              revs[a] := number + 1;
              exps[a] := exps[a] - 1;
              pc := pc + 5;
            end if;
          elsif kinds[a] = 6 and number <= exps[a] then
            kinds[d] := 2;
            vals[d] := number;
            revs[d] := null;
            exps[d] := null;
            if number = exps[a] then
              kinds[a] := 0;
            else
              revs[a] := number + 1;
            end if;
            pc := pc + 5;
          else
            pc := code[pc + 3];
          end if;
        else                                                            -- 19 ARRAY d count registers
          d := code[pc + 1];
          count := code[pc + 2];
          if heap_size + count > 100000 then perform "holdfast".script_fail('too-large', 'arrays'); end if;
          for i in 1..count loop
            a := code[pc + 2 + i];
            if (kinds[a] < 5) is not true then
              perform "holdfast".script_fail(case when kinds[a] is null then 'undefined' else 'nested-array' end, a::text);
            end if;
            heap_kinds[heap_size + i] := kinds[a];
            heap_vals[heap_size + i] := vals[a];
            heap_revs[heap_size + i] := revs[a];
            heap_exps[heap_size + i] := exps[a];
            heap_keys[heap_size + i] := null;
            heap_times[heap_size + i] := null;
          end loop;
          kinds[d] := 5;
          vals[d] := '';
          revs[d] := heap_size + 1;
          exps[d] := count;
          heap_size := heap_size + count;
          pc := pc + 3 + count;
        end if;
      elsif op < 26 then
        if clock_timestamp() > deadline then perform "holdfast".script_fail('abort:timeout'); end if;
        if op = 20 then                                                 -- READ d key flags r: 1 ephemeral 2 quiet 4 exists 8 at 16 as of
          a := code[pc + 1];
          flags := code[pc + 3];
          b := code[pc + 4];
          if b > 0 and kinds[b] is null then perform "holdfast".script_fail('undefined', b::text); end if;
          if flags & 8 > 0 then
            select g.found, g.value, g.revision, g.expires_at, g.modified_at into done, bytes, found_revision, expires, modified
              from "holdfast".key_get_revision(tenant, flags & 1 > 0, keys[code[pc + 2]],
                "holdfast".script_integer(kinds[b], vals[b], 'number-format')) g;
          elsif flags & 16 > 0 then
            select g.found, g.value, g.revision, g.expires_at, g.modified_at into done, bytes, found_revision, expires, modified
              from "holdfast".key_get_as_of(tenant, flags & 1 > 0, keys[code[pc + 2]],
                "holdfast".script_instant(kinds[b], vals[b])) g;
          else
            select g.found, null, g.revision, g.expires_at, g.modified_at into done, bytes, found_revision, expires, modified
              from "holdfast".key_get(tenant, flags & 1 > 0, keys[code[pc + 2]]) g;
          end if;
          if a > 0 then
            if flags & 4 > 0 then
              kinds[a] := 1;
              vals[a] := done;
            elsif done then
              kinds[a] := 4;
              vals[a] := convert_from(bytes, 'UTF8');
            else
              kinds[a] := 0;
              vals[a] := '';
            end if;
            revs[a] := case when done then found_revision end;
            exps[a] := case when done then floor(extract(epoch from expires) * 1000) end;
          end if;
          if flags & 2 = 0 then
            answer := case when not done then 5 when flags & 4 > 0 then 4 else 3 end;
            if flags & 4 > 0 then
              bytes := null;
              if not done then found_revision := 0; end if;
            end if;
            from_register := false;
            found_key := code[pc + 2];
          end if;
          pc := pc + 5;
        elsif op = 21 then                                              -- LIST d key flags r: 1 ephemeral 2 quiet 4 prefix 16 as of
          a := code[pc + 1];
          flags := code[pc + 3];
          b := code[pc + 4];
          if b > 0 and kinds[b] is null then perform "holdfast".script_fail('undefined', b::text); end if;
          number := case when b > 0 then "holdfast".script_instant(kinds[b], vals[b]) end;
          listing := null;
          if a = 0 then
            if flags & 4 > 0 then
              select count(*), sum(octet_length(l.value)), json_agg(json_build_array(l.key, encode(l.value, 'hex'), l.revision::text,
                  floor(extract(epoch from l.expires_at) * 1000), floor(extract(epoch from l.modified_at) * 1000)))::text
                into count, number, listing
                from (select * from "holdfast".key_prefix(tenant, flags & 1 > 0, keys[code[pc + 2]], number) limit 100001) l;
            else
              select count(*), sum(octet_length(l.value)), json_agg(json_build_array(l.key, encode(l.value, 'hex'), l.revision::text,
                  floor(extract(epoch from l.expires_at) * 1000), floor(extract(epoch from l.modified_at) * 1000)))::text
                into count, number, listing
                from (select * from "holdfast".key_bucket(tenant, flags & 1 > 0, keys[code[pc + 2]], number) limit 100001) l;
            end if;
            if count > 100000 or number > 67108864 then perform "holdfast".script_fail('too-large', 'listing'); end if;
          else
            declare
              new_vals text[];
              new_revs bigint[];
              new_exps bigint[];
              new_keys text[];
              new_times bigint[];
            begin
              select count(*), array_agg(convert_from(l.value, 'UTF8')), array_agg(l.revision),
                  array_agg(floor(extract(epoch from l.expires_at) * 1000)::bigint), array_agg(l.key),
                  array_agg(floor(extract(epoch from l.modified_at) * 1000)::bigint)
                into count, new_vals, new_revs, new_exps, new_keys, new_times
                from (
                  select * from "holdfast".key_prefix(tenant, flags & 1 > 0, keys[code[pc + 2]], number) where flags & 4 > 0
                  union all
                  select * from "holdfast".key_bucket(tenant, flags & 1 > 0, keys[code[pc + 2]], number) where flags & 4 = 0
                  limit 100001
                ) l;
              if heap_size + count > 100000 then perform "holdfast".script_fail('too-large', 'arrays'); end if;
              kinds[a] := 5;
              vals[a] := '';
              revs[a] := heap_size + 1;
              exps[a] := count;
              if count > 0 then
                heap_kinds := heap_kinds || array_fill(4, array[count]);
                heap_vals := heap_vals || new_vals;
                heap_revs := heap_revs || new_revs;
                heap_exps := heap_exps || new_exps;
                heap_keys := heap_keys || new_keys;
                heap_times := heap_times || new_times;
                heap_size := heap_size + count;
              end if;
            end;
          end if;
          if flags & 2 = 0 then
            answer := case when count > 0 then 3 else 5 end;
            from_register := a > 0 and count > 0;
            if from_register then
              kinds[1] := 5;
              vals[1] := '';
              revs[1] := revs[a];
              exps[1] := exps[a];
            end if;
            bytes := null;
            found_revision := -1;
            expires := null;
            modified := null;
            found_key := null;
          end if;
          pc := pc + 5;
        elsif op = 22 then                                              -- DELETE d key flags
          select s.done, s.revision into done, found_revision
            from "holdfast".key_delete(tenant, code[pc + 3] & 1 > 0, keys[code[pc + 2]], null, null) s;
          answer := case when done then 6 else 5 end;
          if not done then found_revision := greatest(found_revision, 0); end if;
          written := answer;
          from_register := false;
          bytes := null;
          expires := null;
          modified := null;
          found_key := code[pc + 2];
          a := code[pc + 1];
          if a > 0 then
            kinds[a] := 1;
            vals[a] := done;
          end if;
          pc := pc + 4;
        elsif op = 23 then                                              -- EXTEND d key flags ttl
          b := code[pc + 4];
          if kinds[b] is null then perform "holdfast".script_fail('undefined', b::text); end if;
          select s.done, s.revision, s.expires_at into done, found_revision, expires
            from "holdfast".key_extend(tenant, code[pc + 3] & 1 > 0, keys[code[pc + 2]],
              nullif("holdfast".script_ttl(kinds[b], vals[b]), 0)) s;
          answer := case when done then 7 else 5 end;
          if not done then found_revision := greatest(found_revision, 0); end if;
          written := answer;
          from_register := false;
          bytes := null;
          modified := null;
          found_key := code[pc + 2];
          a := code[pc + 1];
          if a > 0 then
            kinds[a] := 1;
            vals[a] := done;
          end if;
          pc := pc + 5;
        elsif op = 24 then                                              -- SLEEP a
          a := code[pc + 1];
          if kinds[a] is null then perform "holdfast".script_fail('undefined', a::text); end if;
          number := "holdfast".script_integer(kinds[a], vals[a], 'bad-sleep');
          if number not between 0 and 300000 then perform "holdfast".script_fail('bad-sleep'); end if;
          if clock_timestamp() + number * interval '1 millisecond' > deadline then perform "holdfast".script_fail('abort:timeout'); end if;
          perform pg_sleep(number / 1000.0);
          pc := pc + 2;
        else                                                            -- 25 CLEAR a: the value was not read
          a := code[pc + 1];
          revs[a] := null;
          exps[a] := null;
          pc := pc + 2;
        end if;
      elsif op = 26 then                                                -- STATUS d which: 1 not set, 2 not found
        d := code[pc + 1];
        if code[pc + 2] = 1 and written is null then perform "holdfast".script_fail('no-previous-write'); end if;
        kinds[d] := 1;
        vals[d] := case code[pc + 2] when 1 then written <> 1 else answer not in (3, 4) end;
        pc := pc + 3;
      elsif op = 27 then                                                -- THROW a
        a := code[pc + 1];
        if (kinds[a] < 5) is not true then
          perform "holdfast".script_fail(case when kinds[a] is null then 'undefined' else 'array-not-storable' end, a::text);
        end if;
        perform "holdfast".script_fail('throw', case kinds[a] when 0 then '(null)' else vals[a] end);
      elsif op = 28 then                                                -- ABORT, FAIL: the library knows why
        perform "holdfast".script_fail('stop');
      else
        perform "holdfast".script_fail('fault', op::text);
      end if;
    end loop;

    if lock_names is not null then
      if persistent > 0 then perform "holdfast".key_unlock_unwritten(tenant, false, lock_names[1 : persistent]); end if;
      if persistent < cardinality(lock_names) then
        perform "holdfast".key_unlock_unwritten(tenant, true, lock_names[persistent + 1 : cardinality(lock_names)]);
      end if;
    end if;
    perform set_config('lock_timeout', old_wait, true);

    if from_register and kinds[1] < 5 then
      value := encode(convert_to(vals[1], 'UTF8'), 'hex');
      revision := coalesce(revs[1], -1);
      expires_at := exps[1];
    elsif from_register and kinds[1] = 6 then
      if exps[1]::numeric - revs[1] >= 100000 then perform "holdfast".script_fail('too-large', 'range'); end if;
      select coalesce(json_agg(json_build_array(null, encode(convert_to(n::text, 'UTF8'), 'hex'), '-1', null, null))::text, '[]')
        into items
        from generate_series(revs[1], exps[1]) n;
    elsif from_register then
      select coalesce(json_agg(json_build_array(heap_keys[n], encode(convert_to(heap_vals[n], 'UTF8'), 'hex'),
          coalesce(heap_revs[n], -1)::text, heap_exps[n], heap_times[n]))::text, '[]') into items
        from generate_series(revs[1], revs[1] + exps[1] - 1) n;
    elsif answer > 0 then
      if found_key is null then items := listing; end if;
      key := keys[found_key];
      if answer = 3 then value := encode(bytes, 'hex'); end if;
      revision := found_revision;
      expires_at := floor(extract(epoch from expires) * 1000);
      modified_at := floor(extract(epoch from modified) * 1000);
    end if;
    at := pc;
  exception
    when serialization_failure then
      raise;
    when others then
      get stacked diagnostics failure = returned_sqlstate, reason = message_text, detail = pg_exception_detail;
      at := pc;
      answer := 0;
      case failure
        when 'HF100' then null;
        when '22012' then reason := 'division-by-zero';
        when '22003' then reason := 'overflow';
        when '22021', '22P05' then reason := 'not-text';
        when 'HF001' then
          detail := reason;
          reason := 'invalid-input';
        when '55P03' then reason := 'abort:lock-timeout';
        when '40P01' then
          if not in_transaction then raise; end if;
          reason := 'abort:conflict';
        else raise;
      end case;
  end;
end
$function$;

create or replace function holdfast.script_ttl(kind integer, val text)
 RETURNS bigint
 LANGUAGE plpgsql
 IMMUTABLE
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
declare
  ttl bigint := "holdfast".script_integer(kind, val, 'bad-expiry');
begin
  if ttl not between 0 and 2147483647 then perform "holdfast".script_fail('invalid-input', 'ttl'); end if;
  return ttl;
end
$function$;

create or replace function holdfast.tell_key_changed(tenant text, ephemeral boolean, key text)
 RETURNS boolean
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
#variable_conflict use_column
begin
  perform pg_notify('holdfast_hint_d1580d2df7f24b6f5e2a861eba291875', 'keys') where exists (select from "holdfast".key_watcher w
    where w.expires_at > clock_timestamp() and w.ephemeral = tell_key_changed.ephemeral and w.tenant = tell_key_changed.tenant
      and starts_with(tell_key_changed.key, w.prefix));
  return true;
end
$function$;

create or replace function holdfast.tell_lock_free(durability text, tenant text, resource text)
 RETURNS boolean
 LANGUAGE plpgsql
 SET search_path TO 'pg_catalog', 'pg_temp'
AS $function$
begin
  perform pg_notify('holdfast_hint_d1580d2df7f24b6f5e2a861eba291875', "holdfast".lock_topic(durability, tenant, resource));
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

-- compatible: adds tables, functions and a nullable column; older workers go on and use none of them.
-- Takes ACCESS EXCLUSIVE on job for a moment.

-- What is known of an effect on something outside this database.
create type :schema.effect_state as enum (
  'intended',    -- a call is under way, or its process died in the middle of it
  'uncertain',   -- the call is over, and whether it took effect is not known
  'open',        -- it has not happened and may be called
  'happened'
);

-- One row for each effect that was ever intended, by what it is for the business: not by job or attempt, so that it is
-- the same effect whoever asks for it. Outlives the job.
create table :schema.effect (
  tenant text collate "C" not null,
  name text collate "C" not null,
  key text collate "C" not null,
  state :schema.effect_state not null,
  call uuid not null,                       -- the newest call: what it records is refused once another has taken over
  calls integer not null,                   -- how often the outside was called, or may have been
  doubts integer not null default 0,        -- of the calls before the newest, how many ended in doubt
  job_id bigint,                            -- of the newest call; null outside jobs
  token bigint,
  held_until timestamptz,                   -- outside jobs: how long the call counts as under way
  intended_at timestamptz not null default clock_timestamp(),
  ended_at timestamptz,
  result json,
  error json,                               -- of the newest call, if it threw
  constraint effect_pkey primary key (tenant, name, key)
);
create index effect_job_idx on :schema.effect (job_id);
create index effect_doubtful_idx on :schema.effect (intended_at, tenant, name, key) where state in ('intended', 'uncertain');
create index effect_ended_idx on :schema.effect (ended_at) where state in ('happened', 'open');

-- The jobs that were discarded for want of a decision on an effect: any number may ask about the same one.
create table :schema.effect_question (
  job_id bigint not null,
  asked_at timestamptz not null default clock_timestamp(),
  tenant text collate "C" not null,
  name text collate "C" not null,
  key text collate "C" not null,
  constraint effect_question_pkey primary key (job_id)
);
create index effect_question_effect_idx on :schema.effect_question (tenant, name, key);

-- What people decided, and why.
create table :schema.audit (
  id bigint generated always as identity,
  at timestamptz not null default clock_timestamp(),
  actor text not null,
  action text not null,
  subject text not null,
  note text,
  constraint audit_pkey primary key (id)
);
-- Subjects name keys, and may be longer than an index entry.
create index audit_subject_idx on :schema.audit (left(subject, 255), id);

-- What an attempt left for the next one, and how far it has come. `token` is of the attempt that wrote last: an older
-- one is refused.
create table :schema.checkpoint (
  job_id bigint not null,
  token bigint not null,
  updated_at timestamptz not null default clock_timestamp(),
  value json,
  progress_at timestamptz,                  -- when how far it has come was told last
  fraction float8,
  note text,
  constraint checkpoint_pkey primary key (job_id)
) with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Set with a job's first checkpoint: a claim reads the job's row anyway, and need not look for what hardly any job has.
alter table :schema.job add column has_checkpoint boolean;

-- Deletes up to `max_rows` effects that are known, happened or not, for longer than `kept`, and as many checkpoints and
-- questions of jobs whose rows are gone. What is in doubt stays until it is decided. Returns the largest number of rows
-- that went.
create function :schema.prune_effects(kept interval, max_rows integer default 1000) returns integer
language plpgsql security definer set search_path = pg_catalog, pg_temp as $function$
declare
  effects integer;
  checkpoints integer;
  questions integer;
  oldest bigint := (select min(r.end_id) from :schema.id_range r where not r.is_archive);
begin
  with past as (
    select tenant, name, key from :schema.effect
    where state in ('happened', 'open') and ended_at < now() - kept
    order by ended_at limit max_rows for update skip locked
  ), gone as (
    delete from :schema.effect e using past p where (e.tenant, e.name, e.key) = (p.tenant, p.name, p.key) returning 1
  )
  select count(*) into effects from gone;

  with past as (
    select c.job_id from :schema.checkpoint c
    where c.job_id < oldest
      and not exists (select from :schema.job j where j.id = c.job_id)
    order by c.job_id limit max_rows for update skip locked
  ), gone as (
    delete from :schema.checkpoint c using past p where c.job_id = p.job_id returning 1
  )
  select count(*) into checkpoints from gone;

  with past as (
    select q.job_id from :schema.effect_question q
    where q.job_id < oldest and not exists (select from :schema.job j where j.id = q.job_id)
    order by q.job_id limit max_rows for update skip locked
  ), gone as (
    delete from :schema.effect_question q using past p where q.job_id = p.job_id returning 1
  )
  select count(*) into questions from gone;
  return greatest(effects, checkpoints, questions);
end
$function$;

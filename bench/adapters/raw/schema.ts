/**
 * The tables and statements of docs' first design (shared design page, "Starting point in SQL"), and nothing else: no
 * fencing, retry, validation or events. The rate of a bare loop over them is the limit for this design.
 */
export const schema = `
create sequence job_id cache 1000;
create table job (
  id bigint not null, queue int not null, priority smallint not null, max_attempts smallint not null, ukey text,
  created_at timestamptz not null default now(), payload jsonb not null, primary key (id)
) partition by range (id);
create table ready (
  queue int not null, priority smallint not null, seq bigint not null, id bigint not null,
  attempts smallint not null default 0
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000, autovacuum_vacuum_cost_delay = 0);
create index ready_claim_idx on ready (queue, priority, seq);
create table scheduled (
  run_at timestamptz not null, queue int not null, priority smallint not null, id bigint not null,
  attempts smallint not null default 0
);
create index scheduled_due_idx on scheduled (run_at, id);
create table unique_key (queue int not null, key text not null, id bigint not null, primary key (queue, key));
create table worker (
  worker_id int generated always as identity primary key, beat timestamptz not null default now(), info jsonb
) with (fillfactor = 50);
create table lease (
  lease_id bigint generated always as identity primary key, worker int not null, queue int not null,
  ids bigint[] not null, attempts smallint[] not null, claimed_at timestamptz not null default now()
);
create table done (
  id bigint not null, status smallint not null, attempts smallint not null,
  finished_at timestamptz not null default now(), result jsonb, primary key (id)
) partition by range (id);
create table waiter (worker int primary key);
`

/** Partitions of `job` and `done`; the last takes all that a run of any length enqueues. */
export function partitions(size: number, count: number): string {
  const one = (table: string, index: number) => {
    const to = index === count - 1 ? 'maxvalue' : String((index + 1) * size)
    return `create table ${table}_${index} partition of ${table} for values from (${index * size}) to (${to});`
  }
  return ['job', 'done'].flatMap((t) => Array.from({ length: count }, (_, i) => one(t, i))).join('\n')
}

/** $1 JSON array of {q,p,at,k,m,d}. Wakes sleepers only: a NOTIFY makes commits queue for one lock. */
export const enqueue = `
with x as materialized (
  select nextval('job_id') as id, o, coalesce(q, 0) q, coalesce(p, 0::smallint) p, at, k, coalesce(m, 20::smallint) m, d
  from rows from (jsonb_to_recordset($1::text::jsonb) as (q int, p smallint, at timestamptz, k text, m smallint, d jsonb))
    with ordinality t(q, p, at, k, m, d, o)
), u as (
  insert into unique_key (queue, key, id) select q, k, id from x where k is not null
  on conflict (queue, key) do nothing returning id
), a as (
  select * from x where k is null or id in (select id from u)
), j as (
  insert into job (id, queue, priority, max_attempts, ukey, payload) select id, q, p, m, k, d from a
), s as (
  insert into scheduled (run_at, queue, priority, id) select at, q, p, id from a where at > now()
), r as (
  insert into ready (queue, priority, seq, id) select q, p, id, id from a where at is null or at <= now()
), w as (
  select pg_notify('raw_wake', '') from (select from waiter limit 1) sleeper
)
select json_agg(case when k is null or id in (select id from u) then id end order by o) ids,
  (select count(*) from w) woken
from x`

/** $1 limit, $2 worker, $3 queue, $4 priorities, $5 their low-water hints. */
export const claim = `
with d as (
  delete from ready where ctid = any(array(
    select r.ctid from unnest($4::smallint[], $5::bigint[]) c(priority, lo)
    cross join lateral (
      select ctid from ready where queue = $3 and priority = c.priority and seq > c.lo
      order by seq limit $1 for update skip locked
    ) r limit $1))
  returning id, priority, attempts, seq
), l as (
  insert into lease (worker, queue, ids, attempts)
  select $2, $3, array_agg(id), array_agg(attempts) from d having count(*) > 0 returning lease_id
)
select l.lease_id, (select json_object_agg(priority, m) from (select priority, max(seq) m from d group by 1) h) hi,
  (select json_agg(json_build_array(d.id, d.attempts + 1, job.payload, job.ukey)) from d join job using (id)) jobs
from l`

/** $1 ids, $2 worker, $3 finished leases, $4 all leases, $5 attempts, $6 lease of each id. */
export const settle = `
with f as (
  select lease_id from lease where lease_id = any($4::bigint[]) and worker = $2 for update
), i as (
  insert into done (id, status, attempts)
  select x.id, 0, x.att from unnest($1::bigint[], $6::bigint[], $5::smallint[]) x(id, lid, att)
  where x.lid in (select lease_id from f) returning 1
), z as (
  delete from lease where lease_id = any($3::bigint[]) and worker = $2 and (select count(*) from i) >= 0
)
select count(*)::int n from i`

import { randomUUID } from 'node:crypto'
import { Client, Pool } from 'pg'
import { type Contender, KEYS, keyOf, VALUE } from './contender.ts'

/**
 * The same work as plain SQL by hand, in tables of the same shape as Holdfast's: a lock with owner, token and lease; keys with
 * revision, expiry, and a log of changes. What it leaves out: watchers and the order they need, buckets, limits, checks of
 * arguments, commits that wait whatever the session says, connections that come back.
 */
const SCHEMA = `
  create sequence raw_token;
  create table raw_lock (
    expires_at timestamptz, acquired_at timestamptz, waited_until timestamptz,
    prune_at timestamptz not null default clock_timestamp() + interval '1 day', token bigint,
    tenant text collate "C" not null, resource text collate "C" not null, owner text collate "C",
    primary key (tenant, resource)
  ) with (fillfactor = 70);
  create index on raw_lock (prune_at);
  create table raw_key (
    revision bigint not null, xid xid8 not null, modified_at timestamptz not null, expires_at timestamptz,
    deleted boolean not null, norev boolean not null, tenant text collate "C" not null, key text collate "C" not null,
    value bytea not null, primary key (tenant, key)
  ) with (fillfactor = 80);
  create index on raw_key (expires_at) where not deleted and expires_at is not null;
  create sequence raw_place;
  create table raw_change (
    place bigint primary key, revision bigint not null, xid xid8 not null, changed_at timestamptz not null,
    modified_at timestamptz not null, expires_at timestamptz, kind text not null, norev boolean not null,
    tenant text collate "C" not null, key text collate "C" not null, value bytea
  );
  create index on raw_change (tenant, key, revision, place) where not norev`

const ACQUIRE = {
  name: 'acquire',
  text: `insert into raw_lock as l (tenant, resource, owner, token, expires_at, acquired_at)
    values ('', $1, $2, nextval('raw_token'), clock_timestamp() + interval '30 seconds', clock_timestamp())
    on conflict (tenant, resource) do update set owner = excluded.owner, token = nextval('raw_token'),
      expires_at = excluded.expires_at, acquired_at = excluded.acquired_at
    where l.owner is null or l.expires_at < clock_timestamp() returning token, expires_at`,
}
const RELEASE = {
  name: 'release',
  text: `update raw_lock set owner = null, expires_at = least(expires_at, clock_timestamp())
    where tenant = '' and resource = $1 and owner = $2`,
}
const GET = {
  name: 'get',
  text: `select value, revision, expires_at, modified_at from raw_key
    where tenant = '' and key = $1 and not deleted and (expires_at > clock_timestamp()) is not false`,
}
const LOG = `insert into raw_change (place, revision, xid, changed_at, modified_at, expires_at, kind, norev, tenant, key, value)
    select nextval('raw_place'), revision, xid, modified_at, modified_at, expires_at, 'set', false, tenant, key, value from written
    returning revision`
const SET = {
  name: 'set',
  text: `with written as (
      insert into raw_key as k (revision, xid, modified_at, expires_at, deleted, norev, tenant, key, value)
      values (0, pg_current_xact_id(), clock_timestamp(), null, false, false, '', $1, $2)
      on conflict (tenant, key) do update set revision = k.revision + 1, xid = excluded.xid,
        modified_at = greatest(excluded.modified_at, k.modified_at), expires_at = excluded.expires_at, deleted = false,
        norev = false, value = excluded.value
      returning *
    ) ${LOG}`,
}
const COMPARE_AND_SET = {
  name: 'cas',
  text: `with written as (
      update raw_key k set revision = k.revision + 1, xid = pg_current_xact_id(),
        modified_at = greatest(clock_timestamp(), k.modified_at), deleted = false, norev = false, value = $2
      where tenant = '' and key = $1 and revision = $3 returning *
    ) ${LOG}`,
}
/** How often a waiter asks again: what Holdfast does without wake-ups. */
const RETRY_MS = 200

export async function openRaw(url: string, connections: number): Promise<Contender> {
  const pool = new Pool({ connectionString: url, max: connections })
  await pool.query(SCHEMA)
  const value = Buffer.from(VALUE)
  for (let n = 0; n < KEYS; n += 1) await pool.query({ ...SET, values: [keyOf(n), value] })
  await pool.query('analyze')
  return {
    name: 'raw SQL',
    operations: {
      async lock(n) {
        const values = [keyOf(n), randomUUID()]
        const { rowCount } = await pool.query({ ...ACQUIRE, values })
        if (rowCount === 1) await pool.query({ ...RELEASE, values })
      },
      async get(n) {
        await pool.query({ ...GET, values: [keyOf(n)] })
      },
      async set(n) {
        await pool.query({ ...SET, values: [keyOf(n), value] })
      },
      async compareAndSet(n) {
        const { rows } = await pool.query({ ...GET, values: [keyOf(n)] })
        await pool.query({ ...COMPARE_AND_SET, values: [keyOf(n), value, rows[0].revision] })
      },
    },
    async openWaiter(resource) {
      const client = new Client({ connectionString: url })
      await client.connect()
      const values = [resource, randomUUID()]
      return {
        async acquire() {
          while ((await client.query({ ...ACQUIRE, values })).rowCount === 0)
            await new Promise((resolve) => setTimeout(resolve, RETRY_MS * (0.75 + Math.random() / 2)))
          return async () => {
            await client.query({ ...RELEASE, values })
          }
        },
        close: async () => await client.end(),
      }
    },
    close: async () => await pool.end(),
  }
}

/** Locks of a session: no lease, no token, and gone with their connection, which each holder needs for itself. */
export async function openAdvisory(url: string, connections: number): Promise<Contender> {
  const pool = new Pool({ connectionString: url, max: connections })
  const acquire = { name: 'try', text: 'select pg_try_advisory_lock(hashtextextended($1, 0))' }
  const wait = { name: 'wait', text: 'select pg_advisory_lock(hashtextextended($1, 0))' }
  const release = { name: 'unlock', text: 'select pg_advisory_unlock(hashtextextended($1, 0))' }
  return {
    name: 'advisory locks',
    operations: {
      async lock(n) {
        const client = await pool.connect()
        const values = [keyOf(n)]
        await client.query({ ...acquire, values })
        await client.query({ ...release, values })
        client.release()
      },
    },
    async openWaiter(resource) {
      const client = new Client({ connectionString: url })
      await client.connect()
      const values = [resource]
      return {
        async acquire() {
          await client.query({ ...wait, values })
          return async () => {
            await client.query({ ...release, values })
          }
        },
        close: async () => await client.end(),
      }
    },
    close: async () => await pool.end(),
  }
}

/**
 * The script as one function that somebody has written by hand over the SQL functions of keys, with the same locks: what a
 * script has to be measured by.
 */
export async function openHandWritten(url: string, connections: number): Promise<Contender> {
  const pool = new Pool({ connectionString: url, max: connections })
  await pool.query(`
    create function hand_written(status_key text, owner_key text, owner text, out status text) language plpgsql as $$
    declare
      kept record;
    begin
      perform holdfast.key_lock('', false, array[status_key, owner_key], array[true, true]);
      select * into kept from holdfast.key_get('', false, status_key);
      if kept.found then
        status := convert_from(kept.value, 'UTF8');
      else
        perform holdfast.key_set('', false, status_key, 'completed', null, false, false, null, null, false);
        perform holdfast.key_set('', false, owner_key, convert_to(owner, 'UTF8'), null, false, false, null, null, false);
      end if;
      perform holdfast.key_unlock_unwritten('', false, array[status_key, owner_key]);
    end $$`)
  const script = { name: 'script', text: 'select hand_written($1, $2, $3)' }
  return {
    name: 'function by hand',
    operations: {
      async script(n) {
        await pool.query({ ...script, values: [`hand/${n}/status`, `hand/${n}/owner`, 'me'] })
      },
    },
    close: async () => await pool.end(),
  }
}

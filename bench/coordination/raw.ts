import { randomUUID } from 'node:crypto'
import { Client, Pool } from 'pg'
import { type Contender, KEYS, keyOf, VALUE } from './contender.ts'

/**
 * The same work as plain SQL by hand: a lock with owner, token and lease; keys with revision, history, conditions; the script as
 * one PL/pgSQL function. Without tenants, expiry of keys, watchers, checks of arguments, or reconnecting.
 */
const SCHEMA = `
  create sequence raw_token;
  create table raw_lock (
    resource text collate "C" primary key, owner text, token bigint not null, expires_at timestamptz not null
  );
  create table raw_key (
    key text collate "C" primary key, revision bigint not null, modified_at timestamptz not null, value bytea not null
  ) with (fillfactor = 80);
  create sequence raw_place;
  create table raw_change (
    place bigint primary key, revision bigint not null, modified_at timestamptz not null, key text collate "C" not null,
    value bytea not null
  );
  create index on raw_change (key, revision);
  create function raw_script(status_key text, owner_key text, owner text) returns text language plpgsql as $$
  declare
    status bytea;
    revision_now bigint;
  begin
    perform 1 from raw_key k where k.key in (status_key, owner_key) order by k.key for update;
    select k.value into status from raw_key k where k.key = status_key;
    if status is null then
      insert into raw_key as k values (status_key, 0, clock_timestamp(), convert_to('completed', 'UTF8'))
      on conflict (key) do update set revision = k.revision + 1, modified_at = excluded.modified_at, value = excluded.value
      returning k.revision into revision_now;
      insert into raw_change values (nextval('raw_place'), revision_now, clock_timestamp(), status_key, convert_to('completed', 'UTF8'));
      insert into raw_key as k values (owner_key, 0, clock_timestamp(), convert_to(owner, 'UTF8'))
      on conflict (key) do update set revision = k.revision + 1, modified_at = excluded.modified_at, value = excluded.value
      returning k.revision into revision_now;
      insert into raw_change values (nextval('raw_place'), revision_now, clock_timestamp(), owner_key, convert_to(owner, 'UTF8'));
    end if;
    return convert_from(status, 'UTF8');
  end $$`

const ACQUIRE = {
  name: 'acquire',
  text: `insert into raw_lock as l values ($1, $2, nextval('raw_token'), clock_timestamp() + interval '30 seconds')
    on conflict (resource) do update set owner = excluded.owner, token = nextval('raw_token'), expires_at = excluded.expires_at
    where l.owner is null or l.expires_at < clock_timestamp() returning token`,
}
const RELEASE = {
  name: 'release',
  text: 'update raw_lock set owner = null where resource = $1 and owner = $2',
}
const GET = { name: 'get', text: 'select value, revision, modified_at from raw_key where key = $1' }
const SET = {
  name: 'set',
  text: `with written as (
      insert into raw_key as k values ($1, 0, clock_timestamp(), $2)
      on conflict (key) do update set revision = k.revision + 1, modified_at = excluded.modified_at, value = excluded.value
      returning revision, modified_at, key, value
    )
    insert into raw_change select nextval('raw_place'), * from written returning revision`,
}
const COMPARE_AND_SET = {
  name: 'cas',
  text: `with written as (
      update raw_key set revision = revision + 1, modified_at = clock_timestamp(), value = $2
      where key = $1 and revision = $3 returning revision, modified_at, key, value
    )
    insert into raw_change select nextval('raw_place'), * from written returning revision`,
}
const SCRIPT = { name: 'script', text: 'select raw_script($1, $2, $3)' }
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
      async script(n) {
        await pool.query({ ...SCRIPT, values: [`script/${n}/status`, `script/${n}/owner`, 'me'] })
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

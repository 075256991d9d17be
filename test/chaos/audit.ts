import pg from 'pg'

/**
 * The history as the database saw it: triggers note every row that is written to the tables that decide what a job
 * is, in the order in which transactions that touch one job follow each other.
 */
export interface AuditRow {
  readonly seq: number
  /** By PostgreSQL's clock, in milliseconds since 1970. */
  readonly atMs: number
  /** `outcome`, `attempt`, `lease`, `key+`, `key-`, `ready`, `scheduled`, `parked`; `outcome:update` and `outcome:delete` must not be. */
  readonly what: string
  readonly job: string
  readonly token: string | null
  readonly worker: string | null
  /** State of an outcome, end of an attempt, or the key. */
  readonly detail: string | null
  readonly attempts: number | null
}

export interface JobRow {
  readonly id: string
  readonly name: string
  readonly key: string
  readonly uniqueKey: string | null
  readonly maxAttempts: number
  readonly runAtMs: number | null
  /** How many places the job is in: exactly one. */
  readonly places: number
  readonly state: string | null
}

/** A row of the ledger as it was written. */
export interface EffectRow {
  readonly seq: number
  readonly atMs: number
  readonly key: string
  readonly state: string
  readonly call: string
  readonly job: string | null
  readonly token: string | null
}

/** What a handler's commit wrote beside its completion. */
export interface CommitRow {
  readonly job: string
  readonly token: string
  readonly key: string
  /** Rows that its effect in the transaction wrote: one. */
  readonly written: number
}

export interface CheckpointRow {
  readonly job: string
  readonly token: string
  readonly value: string | null
  readonly fraction: number | null
}

const INSTALL = `
create schema audit;
create table audit.event (
  seq bigint generated always as identity (cache 1), at timestamptz not null default clock_timestamp(),
  what text not null, job bigint, token bigint, worker bigint, detail text, attempts int
);
create table orders (key text primary key);
create table audit.effect (
  seq bigint generated always as identity (cache 1), at timestamptz not null default clock_timestamp(),
  key text, state text, call text, job bigint, token bigint
);
create table audit.checkpoint (seq bigint generated always as identity (cache 1), job bigint, token bigint, value text, fraction float8);
create table commits (job bigint, token bigint, key text);
create table written (key text);
create table counters (shard int primary key, n int not null default 0);
insert into counters (shard) select generate_series(0, 15);
create function audit.note_effect() returns trigger language plpgsql as $$
begin
  insert into audit.effect (key, state, call, job, token) values (new.key, new.state::text, new.call::text, new.job_id, new.token);
  return null;
end $$;
create function audit.note_checkpoint() returns trigger language plpgsql as $$
begin
  insert into audit.checkpoint (job, token, value, fraction) values (new.job_id, new.token, new.value::text, new.fraction);
  return null;
end $$;
create trigger audit after insert or update on holdfast.effect for each row execute function audit.note_effect();
create trigger audit after insert or update on holdfast.checkpoint for each row execute function audit.note_checkpoint();
create function audit.note() returns trigger language plpgsql as $$
begin
  case tg_table_name
    when 'lease' then
      insert into audit.event (what, job, token, worker) select 'lease', id, new.token, new.worker_id from unnest(new.job_ids) id;
    when 'unique_key' then
      if tg_op = 'INSERT' then insert into audit.event (what, job, detail) values ('key+', new.job_id, new.name || '/' || new.key);
      else insert into audit.event (what, job, detail) values ('key-', old.job_id, old.name || '/' || old.key); end if;
    when 'ready', 'scheduled', 'parked' then
      insert into audit.event (what, job, attempts) values (tg_table_name, new.job_id, new.attempts);
    else
      if tg_argv[0] = 'attempt' then
        insert into audit.event (what, job, token, worker, detail, attempts)
        values ('attempt', new.job_id, new.token, new.worker_id, new.ended::text, new.attempt);
      elsif tg_op = 'INSERT' then
        insert into audit.event (what, job, token, detail, attempts)
        values ('outcome', new.job_id, new.token, new.state::text || coalesce('/' || new.reason, ''), new.attempts);
      else
        insert into audit.event (what, job) values ('outcome:' || lower(tg_op), old.job_id);
      end if;
  end case;
  return null;
end $$;
create trigger audit after insert on holdfast.lease for each row execute function audit.note();
create trigger audit after insert or delete on holdfast.unique_key for each row execute function audit.note();
create trigger audit after insert on holdfast.ready for each row execute function audit.note();
create trigger audit after insert on holdfast.scheduled for each row execute function audit.note();
create trigger audit after insert on holdfast.parked for each row execute function audit.note();
create trigger audit after insert on holdfast.attempt for each row execute function audit.note('attempt');
create trigger audit after insert or update or delete on holdfast.outcome for each row execute function audit.note('outcome');
`

/** Direct sessions to the server, past every proxy; each statement on a connection of its own, tried again while the server is away. */
export class Inspector {
  readonly #url: string

  constructor(url: string) {
    this.#url = url
  }

  async install(): Promise<void> {
    await this.query(INSTALL)
  }

  async query<R extends Record<string, unknown>>(
    text: string,
    values: readonly unknown[] = [],
  ): Promise<R[]> {
    for (let tries = 1; ; tries += 1) {
      const client = new pg.Client({ connectionString: this.#url, application_name: 'chaos inspector' })
      client.on('error', () => {})
      try {
        await client.connect()
        return (await client.query<R>(text, [...values])).rows
      } catch (error) {
        if (tries >= 100 || !isOutage(error)) throw error
        await new Promise((resolve) => setTimeout(resolve, 100))
      } finally {
        await client.end().catch(() => {})
      }
    }
  }

  async audit(): Promise<readonly AuditRow[]> {
    const rows = await this.query<Record<string, string | number | null>>(
      `select seq::text, (extract(epoch from at) * 1000)::float8 as "atMs", what, job::text, token::text, worker::text, detail, attempts
       from audit.event order by event.seq`,
    )
    return rows.map((row) => ({ ...row, seq: Number(row['seq']) })) as unknown as AuditRow[]
  }

  async jobs(): Promise<readonly JobRow[]> {
    return (await this.query(
      `with place as materialized (select id, count(state)::int as places, min(state) as state from holdfast.jobs group by id)
       select j.id::text, j.name, j.input ->> 'key' as key, j.unique_key as "uniqueKey", j.max_attempts::int as "maxAttempts",
         (extract(epoch from j.run_at) * 1000)::float8 as "runAtMs", coalesce(place.places, 0) as places, place.state
       from holdfast.job j left join place on place.id = j.id order by j.id`,
    )) as unknown as JobRow[]
  }

  async effects(): Promise<readonly EffectRow[]> {
    return (await this.query(
      `select seq::int, (extract(epoch from at) * 1000)::float8 as "atMs", key, state, call, job::text, token::text
       from audit.effect order by effect.seq`,
    )) as unknown as EffectRow[]
  }

  async commits(): Promise<readonly CommitRow[]> {
    return (await this.query(
      `select job::text, token::text, key, (select count(*)::int from written w where w.key = c.key) as written from commits c`,
    )) as unknown as CommitRow[]
  }

  async checkpoints(): Promise<readonly CheckpointRow[]> {
    return (await this.query(
      'select job::text, token::text, value, fraction from audit.checkpoint order by checkpoint.seq',
    )) as unknown as CheckpointRow[]
  }

  /** Jobs that have not ended, and what else ought to be gone when all have. */
  async unfinished(): Promise<number> {
    const [row] = await this.query<{ left: number }>(
      `select ((select count(*) from holdfast.job) - (select count(*) from holdfast.outcome))::int as left`,
    )
    return row?.left ?? 0
  }

  /** What to add to the machine's monotonic clock to get PostgreSQL's: of many readings the one that took least. */
  async clockOffsetMs(machineMs: () => number): Promise<number> {
    const client = new pg.Client({ connectionString: this.#url })
    await client.connect()
    let best = { tookMs: Number.POSITIVE_INFINITY, offsetMs: 0 }
    for (let readings = 0; readings < 50; readings += 1) {
      const beforeMs = machineMs()
      const { rows } = await client.query<{ now: number }>(
        'select (extract(epoch from clock_timestamp()) * 1000)::float8 as now',
      )
      const tookMs = machineMs() - beforeMs
      const offsetMs = (rows[0]?.now ?? 0) - beforeMs - tookMs / 2
      if (tookMs < best.tookMs) best = { tookMs, offsetMs }
    }
    await client.end()
    return best.offsetMs
  }
}

function isOutage(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
  return !/^[0-9A-Z]{5}$/.test(code) || /^(57P|08|53300)/.test(code)
}

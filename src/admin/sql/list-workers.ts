import { operation, type Row } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { hasAttempt, hasEnded } from '../../jobs/sql/probes.ts'

/** Workers with a row, the newest first: the live ones, and dead ones whose jobs nobody has rescued yet. A plain read. */
export const listWorkers = operation({
  name: 'list_workers',
  params: { limit: 'int4' },
  columns: {
    id: 'text',
    name: 'text',
    app: 'text',
    version: 'text',
    isAlive: 'bool',
    heartbeatAgeMs: 'int8',
    leaseMs: 'int4',
    startedAt: 'instant',
    executing: 'int4',
    queues: 'json',
    jobs: 'json',
  },
  repeatable: true,
  text: (t, p) => sql`select w.id::text, w.name, w.app, w.version,
      w.heartbeat_at + w.lease_ms * interval '1 millisecond' >= clock_timestamp() as is_alive,
      (extract(epoch from clock_timestamp() - w.heartbeat_at) * 1000)::int8 as heartbeat_age_ms, w.lease_ms,
      (extract(epoch from w.started_at) * 1000)::int8 as started_at,
      (select count(*)::int4 from ${t.lease} l cross join lateral pg_catalog.unnest(l.job_ids) h (job_id)
        where l.worker_id = w.id
          and not ${hasAttempt(t, sql`h.job_id`, sql`l.token`)}
          and not ${hasEnded(t, sql`h.job_id`)}) as executing,
      w.queues::text, w.jobs::text
    from ${t.worker} w order by w.id desc limit ${p.limit}`,
})

export type WorkerRow = Row<typeof listWorkers>

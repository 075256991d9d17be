import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** Adds this process life as a worker. A row left by a lost reply is removed by the rescuer once it is stale. */
export const registerWorker = operation({
  name: 'register_worker',
  params: {
    name: 'text',
    app: 'text',
    version: 'text',
    leaseMs: 'int4',
    queues: 'json',
    jobs: 'json',
    queueNames: 'text[]',
  },
  /** `signals`: for each queue, the text by which notifications name it. */
  columns: { id: 'int8', signals: 'json' },
  text: (t, p) => sql`insert into ${t.worker} (name, app, version, lease_ms, queues, jobs)
    values (${p.name}, ${p.app}, ${p.version}, ${p.leaseMs}, ${p.queues}, ${p.jobs})
    returning id, (select json_object_agg(to_hex(hashtextextended(q, 0)), q)::text from pg_catalog.unnest(${p.queueNames}) q) as signals`,
})

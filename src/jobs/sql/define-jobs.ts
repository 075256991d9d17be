import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** Registers jobs with the defaults that enqueueing by SQL takes. The last one to say so wins. Safe to repeat. */
export const defineJobs = operation({
  name: 'define_jobs',
  params: {
    names: 'text[]',
    queues: 'text[]',
    priorities: 'int2[]',
    maxAttempts: 'int2[]',
    contracts: 'text[]',
  },
  columns: {},
  repeatable: true,
  text: (t, p) => sql`insert into ${t.job_definition} as d (name, queue, priority, max_attempts, contract)
    select * from unnest(${p.names}, ${p.queues}, ${p.priorities}, ${p.maxAttempts}, ${p.contracts}) g (name, queue, priority, max_attempts, contract)
    order by name
    on conflict (name) do update set queue = excluded.queue, priority = excluded.priority,
      max_attempts = excluded.max_attempts, contract = excluded.contract, updated_at = clock_timestamp()
    where (d.queue, d.priority, d.max_attempts, d.contract)
      is distinct from (excluded.queue, excluded.priority, excluded.max_attempts, excluded.contract)`,
})

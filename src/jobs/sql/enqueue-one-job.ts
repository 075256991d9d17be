import { operation, type Params } from '../../driver/operation.ts'
import { channelName, oidOf, sql } from '../../driver/sql.ts'

/**
 * Stores one job that is due at once and carries no key: most enqueues in a transaction of the caller's. Does what
 * `enqueueJobs` does for it, as one plain statement: prepared, it takes PostgreSQL half of what the function takes, and
 * unprepared more (decision 0022). It only inserts, so that its plan is right at every size of the tables. Tells sleepers
 * by itself: the function `announce` costs a tenth of the statement by being in it, though it be not called.
 */
export const enqueueOneJob = operation({
  name: 'enqueue_one_job',
  params: {
    name: 'text',
    queue: 'text',
    priority: 'int2',
    maxAttempts: 'int2',
    contract: 'text?',
    context: 'json?',
    input: 'json',
  },
  columns: {
    id: 'text',
    /** True if workers that sleep were told; null if none does. */
    announced: 'bool?',
  },
  text: (t, p) => sql`with stored as (
      insert into ${t.job} (id, enqueued_at, priority, max_attempts, name, queue, tenant, contract, context, input)
      values (nextval(${oidOf(t.job_seq)}), statement_timestamp(), ${p.priority}, ${p.maxAttempts},
        ${p.name}, ${p.queue}, '', ${p.contract}, ${p.context}, ${p.input})
      returning id
    )
    insert into ${t.ready} (seq, job_id, priority, attempts, crashes, care, queue)
    select id, id, ${p.priority}, 0, 0, case when ${p.maxAttempts} = 1 then 1 else 0 end, ${p.queue} from stored
    returning job_id::text as id, (
      select pg_notify(${channelName}, to_hex(hashtextextended(${p.queue}, 0))) is not null from ${t.waiter} w where w.queue = ${p.queue} limit 1
    ) as announced`,
})

export type OneJob = Params<typeof enqueueOneJob>

import { operation, type Row } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { isEffect, isHeld, keyParams } from '../../effects/sql/effect-key.ts'

/** All that is stored of one effect; JSON as text, digit for digit. No row if it was never intended. A plain read. */
export const findEffectFacts = operation({
  name: 'find_effect_facts',
  params: keyParams,
  columns: {
    tenant: 'text',
    name: 'text',
    key: 'text',
    state: 'text',
    held: 'bool',
    calls: 'int4',
    /** Of the calls before the newest, how many ended in doubt. */
    doubts: 'int4',
    jobId: 'text?',
    fencingToken: 'text?',
    heldUntil: 'instant?',
    intendedAt: 'instant',
    endedAt: 'instant?',
    result: 'text?',
    error: 'text?',
    askingJobs: 'json?',
  },
  repeatable: true,
  text: (
    t,
    p,
  ) => sql`select e.tenant, e.name, e.key, e.state::text as state, ${isHeld(t)} as held, e.calls, e.doubts,
      e.job_id::text as job_id, e.token::text as fencing_token,
      (extract(epoch from e.held_until) * 1000)::int8 as held_until,
      (extract(epoch from e.intended_at) * 1000)::int8 as intended_at,
      (extract(epoch from e.ended_at) * 1000)::int8 as ended_at, e.result::text as result, e.error::text as error,
      (select json_agg(q.job_id::text order by q.job_id)::text from ${t.effect_question} q
        where (q.tenant, q.name, q.key) = (e.tenant, e.name, e.key)) as asking_jobs
    from ${t.effect} e where ${isEffect(p)}`,
})

export type EffectFactsRow = Row<typeof findEffectFacts>

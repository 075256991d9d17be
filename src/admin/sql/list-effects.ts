import { operation, type Row } from '../../driver/operation.ts'
import { type Objects, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'
import { isHeld } from '../../effects/sql/effect-key.ts'

/** Where a page begins: after the effect that the page before ended with. */
const cursorParams = {
  /** Microseconds since 1970 of `intended_at`; before all effects: -1. */
  afterMicros: 'int8',
  afterTenant: 'text',
  afterName: 'text',
  afterKey: 'text',
  limit: 'int4',
} as const

const listColumns = {
  tenant: 'text',
  name: 'text',
  key: 'text',
  state: 'text',
  /** A call is under way, as far as can be known. */
  held: 'bool',
  calls: 'int4',
  jobId: 'text?',
  intendedAt: 'instant',
  intendedMicros: 'text',
  endedAt: 'instant?',
  /** Jobs that were discarded for want of a decision, as a JSON array of ids; the first hundred. */
  askingJobs: 'json?',
} as const

type CursorPlaceholders = { readonly [K in keyof typeof cursorParams]: Placeholder }

function columns(t: Objects): SqlFragment {
  return sql`e.tenant, e.name, e.key, e.state::text as state, ${isHeld(t)} as held, e.calls, e.job_id::text as job_id,
      (extract(epoch from e.intended_at) * 1000)::int8 as intended_at,
      (extract(epoch from e.intended_at) * 1000000)::int8::text as intended_micros,
      (extract(epoch from e.ended_at) * 1000)::int8 as ended_at,
      (select json_agg(q.job_id::text order by q.job_id)::text from (
        select job_id from ${t.effect_question} q where (q.tenant, q.name, q.key) = (e.tenant, e.name, e.key)
        order by job_id limit 100) q) as asking_jobs`
}

function after(p: CursorPlaceholders): SqlFragment {
  return sql`(e.intended_at, e.tenant, e.name, e.key) > ('epoch'::timestamptz + ${p.afterMicros} * interval '1 microsecond',
      ${p.afterTenant} collate "C", ${p.afterName} collate "C", ${p.afterKey} collate "C")
    order by e.intended_at, e.tenant, e.name, e.key limit ${p.limit}`
}

/** A page of the effects that wait for somebody's decision: in doubt, and no call under way; oldest first. A plain read. */
export const listDoubtfulEffects = operation({
  name: 'list_doubtful_effects',
  params: cursorParams,
  columns: listColumns,
  repeatable: true,
  text: (t, p) => sql`select ${columns(t)} from ${t.effect} e
    where e.state in ('intended', 'uncertain') and not ${isHeld(t)} and ${after(p)}`,
})

/** A page of effects in one state, oldest first. Reads the ledger from end to end for the states that most are in. */
export const listEffectsInState = operation({
  name: 'list_effects_in_state',
  params: { ...cursorParams, state: 'text' },
  columns: listColumns,
  repeatable: true,
  text: (t, p) => sql`select ${columns(t)} from ${t.effect} e
    where e.state = ${p.state}::${t.effect_state} and ${after(p)}`,
})

/** A page of the effects whose newest call is of a job, or about which it asks, oldest first. A plain read. */
export const listEffectsOfJob = operation({
  name: 'list_effects_of_job',
  params: { ...cursorParams, jobId: 'int8' },
  columns: listColumns,
  repeatable: true,
  text: (t, p) => sql`select ${columns(t)} from (
      select * from ${t.effect} where job_id = ${p.jobId}
      union all
      select e.* from ${t.effect_question} q join ${t.effect} e on (e.tenant, e.name, e.key) = (q.tenant, q.name, q.key)
      where q.job_id = ${p.jobId} and e.job_id is distinct from ${p.jobId}
    ) e where ${after(p)}`,
})

export type ListedEffect = Row<typeof listDoubtfulEffects>

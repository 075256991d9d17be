import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { isHeld } from '../../effects/sql/effect-key.ts'

/** The effect that a job asks about, if nobody has decided about it; no row otherwise. A plain read. */
export const findOpenQuestion = operation({
  name: 'find_open_question',
  params: { jobId: 'int8' },
  columns: { tenant: 'text', name: 'text', key: 'text' },
  repeatable: true,
  text: (t, p) => sql`select e.tenant, e.name, e.key
    from ${t.effect_question} q join ${t.effect} e on (e.tenant, e.name, e.key) = (q.tenant, q.name, q.key)
    where q.job_id = ${p.jobId} and e.state in ('intended', 'uncertain') and not ${isHeld(t)}`,
})

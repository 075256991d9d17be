import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { keyParams } from '../../effects/sql/effect-key.ts'

/** The jobs that asked about an effect, oldest first. A plain read. */
export const listQuestions = operation({
  name: 'list_questions',
  params: { ...keyParams, limit: 'int4' },
  columns: { jobId: 'text' },
  repeatable: true,
  text: (t, p) => sql`select q.job_id::text as job_id from ${t.effect_question} q
    where q.tenant = ${p.tenant} and q.name = ${p.name} and q.key = ${p.key} order by q.job_id limit ${p.limit}`,
})

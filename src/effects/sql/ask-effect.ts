import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { isEffect, keyParams } from './effect-key.ts'

/** Notes which job waits for a decision on an effect in doubt. Safe to repeat. */
export const askEffect = operation({
  name: 'ask_effect',
  params: { ...keyParams, call: 'text', jobId: 'int8' },
  columns: { asked: 'bool' },
  repeatable: true,
  text: (t, p) => sql`with asked as (
      update ${t.effect} e set asked_job_id = ${p.jobId}
      where ${isEffect(p)} and e.call = ${p.call}::uuid and e.state in ('intended', 'uncertain') returning 1
    )
    select exists (select from asked) as asked`,
})

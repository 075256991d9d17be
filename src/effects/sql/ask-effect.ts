import { attemptFence, attemptParams, fenceAnswer, fenceColumns } from '../../attempts/sql/attempt-fence.ts'
import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { isEffect, keyParams } from './effect-key.ts'

/**
 * Notes that a job waits for a decision on an effect in doubt, if the attempt is still its worker's. `asked` is false if
 * the call is not in doubt any more: look again. FOR SHARE: whoever decides meanwhile is waited for. Safe to repeat.
 */
export const askEffect = operation({
  name: 'ask_effect',
  params: { ...attemptParams, ...keyParams, call: 'text' },
  columns: { ...fenceColumns, asked: 'bool' },
  repeatable: true,
  text: (t, p) => sql`with ${attemptFence(t, p)}, doubtful as (
      select e.tenant, e.name, e.key from ${t.effect} e cross join fence
      where ${isEffect(p)} and e.call = ${p.call}::uuid and e.state in ('intended', 'uncertain') for share of e
    ), asked as (
      insert into ${t.effect_question} (job_id, tenant, name, key) select ${p.jobId}, tenant, name, key from doubtful
      on conflict (job_id) do update set asked_at = clock_timestamp(), tenant = excluded.tenant, name = excluded.name,
        key = excluded.key
      returning 1
    )
    select ${fenceAnswer()}, exists (select from asked) as asked`,
})

import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { isEffect, isHeld, keyParams } from '../../effects/sql/effect-key.ts'

/**
 * Second step of a decision: an effect in doubt has happened, and gave `result`, or has not and may be called. No row: it
 * is not in doubt, or a call of it is under way. Runs inside the transaction that locked it.
 */
export const resolveEffect = operation({
  name: 'resolve_effect',
  params: { ...keyParams, happened: 'bool', result: 'json?' },
  columns: { state: 'text' },
  text: (t, p) => sql`update ${t.effect} e set ended_at = clock_timestamp(), held_until = null, doubts = 0,
      result = case when ${p.happened} then coalesce(${p.result}, 'null'::json) end,
      state = case when ${p.happened} then 'happened'::${t.effect_state} else 'open'::${t.effect_state} end
    where ${isEffect(p)} and e.state in ('intended', 'uncertain') and not ${isHeld(t)}
    returning e.state::text as state`,
})

import { attemptFence, attemptParams, fenceAnswer, fenceColumns } from '../../attempts/sql/attempt-fence.ts'
import { operation } from '../../driver/operation.ts'
import { type Objects, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'
import { isEffect, type KeyPlaceholders, keyParams } from './effect-key.ts'

const endParams = { ...keyParams, call: 'text', notHappened: 'bool', error: 'json?' } as const

type EndPlaceholders = KeyPlaceholders & {
  readonly call: Placeholder
  readonly notHappened: Placeholder
  readonly error: Placeholder
}

function endSteps(t: Objects, p: EndPlaceholders): SqlFragment {
  return sql`ended as (
      update ${t.effect} e set ended_at = clock_timestamp(), error = ${p.error}, held_until = null,
        state = case when ${p.notHappened} and e.doubts = 0 then 'open'::${t.effect_state} else 'uncertain'::${t.effect_state} end
      from fence where ${isEffect(p)} and e.call = ${p.call}::uuid and e.state = 'intended'
      returning 1
    )`
}

/**
 * Records that a call threw: the effect is in doubt, or `open` again if it certainly did not happen, now or at any call
 * before. Only for the newest call of an attempt that is still its worker's. Safe to repeat.
 */
export const endEffect = operation({
  name: 'end_effect',
  params: { ...attemptParams, ...endParams },
  columns: fenceColumns,
  repeatable: true,
  text: (t, p) => sql`with ${attemptFence(t, p)}, ${endSteps(t, p)} select ${fenceAnswer()}`,
})

/** {@link endEffect} outside jobs: only a later call refuses it. */
export const endEffectOutside = operation({
  name: 'end_effect_outside',
  params: endParams,
  columns: { ended: 'bool' },
  repeatable: true,
  text: (t, p) => sql`with fence as (select 1), ${endSteps(t, p)} select exists (select from ended) as ended`,
})

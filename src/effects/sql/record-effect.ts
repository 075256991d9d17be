import { attemptFence, attemptParams, fenceAnswer, fenceColumns } from '../../attempts/sql/attempt-fence.ts'
import { operation } from '../../driver/operation.ts'
import { type Objects, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'
import { isEffect, type KeyPlaceholders, keyParams } from './effect-key.ts'

const recordParams = { ...keyParams, call: 'text', result: 'json' } as const

type RecordPlaceholders = KeyPlaceholders & { readonly call: Placeholder; readonly result: Placeholder }

function recordSteps(t: Objects, p: RecordPlaceholders): SqlFragment {
  return sql`recorded as (
      update ${t.effect} e set state = 'happened', ended_at = clock_timestamp(), held_until = null, result = ${p.result},
        error = null
      from fence where ${isEffect(p)} and e.call = ${p.call}::uuid and e.state <> 'happened'
      returning 1
    )`
}

/**
 * Records that an effect has happened, and its result, if the attempt is still its worker's and no later call has taken
 * the effect over. A job that was cancelled meanwhile does not matter: what happened has happened. What is recorded
 * first stays: `recorded` is false then too, as at a repetition, and whoever wants the result looks.
 */
export const recordEffect = operation({
  name: 'record_effect',
  params: { ...attemptParams, ...recordParams },
  columns: { ...fenceColumns, recorded: 'bool' },
  repeatable: true,
  text: (t, p) => sql`with ${attemptFence(t, p)}, ${recordSteps(t, p)}
    select ${fenceAnswer()}, exists (select from recorded) as recorded`,
})

/** {@link recordEffect} outside jobs: only a later call refuses it. */
export const recordEffectOutside = operation({
  name: 'record_effect_outside',
  params: recordParams,
  columns: { recorded: 'bool' },
  repeatable: true,
  text: (t, p) => sql`with fence as (select 1), ${recordSteps(t, p)}
    select exists (select from recorded) as recorded`,
})

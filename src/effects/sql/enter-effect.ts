import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { isEffect, keyParams } from './effect-key.ts'

/**
 * Takes an effect inside the transaction that is to make it so, before its work is done: whoever does the same waits
 * until the transaction ends. `entered` is false if it has happened, or is in doubt. It counts as intended until
 * {@link setEffectResult}: a transaction that commits without waiting for the work leaves a doubt, and no untruth.
 */
export const enterEffect = operation({
  name: 'enter_effect',
  params: { ...keyParams, call: 'text' },
  columns: { entered: 'bool' },
  repeatable: true,
  text: (t, p) => sql`with entered as (
      insert into ${t.effect} as e (tenant, name, key, state, call, calls)
      values (${p.tenant}, ${p.name}, ${p.key}, 'intended', ${p.call}::uuid, 1)
      on conflict (tenant, name, key) do update set state = 'intended', call = excluded.call, calls = e.calls + 1,
        job_id = null, token = null, held_until = null, intended_at = clock_timestamp(), ended_at = null,
        result = null, error = null
      where e.state = 'open'
      returning 1
    )
    select exists (select from entered) as entered`,
})

/** Records what an effect that was entered in this transaction gave: with its commit, it has happened. */
export const setEffectResult = operation({
  name: 'set_effect_result',
  params: { ...keyParams, call: 'text', result: 'json' },
  columns: { set: 'bool' },
  repeatable: true,
  text: (t, p) => sql`with done as (
      update ${t.effect} e set state = 'happened', ended_at = clock_timestamp(), result = ${p.result}
      where ${isEffect(p)} and e.call = ${p.call}::uuid and e.state = 'intended' returning 1
    )
    select exists (select from done) as set`,
})

/** Takes back what {@link enterEffect} did, where the work failed and the transaction goes on. */
export const leaveEffect = operation({
  name: 'leave_effect',
  params: { ...keyParams, call: 'text' },
  columns: { left: 'bool' },
  repeatable: true,
  text: (t, p) => sql`with done as (
      update ${t.effect} e set state = 'open', ended_at = clock_timestamp()
      where ${isEffect(p)} and e.call = ${p.call}::uuid and e.state = 'intended' returning 1
    )
    select exists (select from done) as "left"`,
})

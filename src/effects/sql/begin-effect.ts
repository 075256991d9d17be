import { attemptFence, attemptParams, fenceAnswer, fenceColumns } from '../../attempts/sql/attempt-fence.ts'
import { operation } from '../../driver/operation.ts'
import { type Objects, type Placeholder, type SqlFragment, sql } from '../../driver/sql.ts'
import { isEffect, type KeyPlaceholders, keyParams } from './effect-key.ts'

const beginParams = {
  ...keyParams,
  /** A UUID of this call. */
  call: 'text',
  /** The call in doubt that this one takes over from; null if none was seen. */
  takes: 'text?',
  /** The provider says that `takes`, and every call before it, did not happen. */
  refuted: 'bool',
} as const

type BeginPlaceholders = KeyPlaceholders & {
  readonly call: Placeholder
  readonly takes: Placeholder
  readonly refuted: Placeholder
}

const beginColumns = {
  began: 'bool',
  /** It has happened, and gave `result`. */
  happened: 'bool',
  result: 'json?',
} as const

function beginAnswer(): SqlFragment {
  return sql`exists (select from began) as began, exists (select from known) as happened,
      (select result::text from known) as result`
}

/** The intent, if `fence` has a row and the effect is nobody else's. `owner` gives job, token and end of the hold. */
function beginSteps(t: Objects, p: BeginPlaceholders, owner: SqlFragment): SqlFragment {
  return sql`known as materialized (
      select e.result from ${t.effect} e where ${isEffect(p)} and e.state = 'happened'
    ), began as (
      insert into ${t.effect} as e (tenant, name, key, state, call, calls, job_id, token, held_until)
      select ${p.tenant}, ${p.name}, ${p.key}, 'intended', ${p.call}::uuid, 1, ${owner} from fence
      where not cancelled and not exists (select from known)
      on conflict (tenant, name, key) do update set state = 'intended', call = excluded.call,
        calls = e.calls + case when e.call = excluded.call then 0 else 1 end,
        doubts = case when ${p.refuted} then 0 when e.call = excluded.call or e.state = 'open' then e.doubts
          else e.doubts + 1 end,
        job_id = excluded.job_id, token = excluded.token, held_until = excluded.held_until,
        intended_at = clock_timestamp(), ended_at = null, error = null
      where e.state = 'open' or (e.state = 'intended' and e.call = excluded.call)
        or (e.state <> 'happened' and e.call = ${p.takes}::uuid)
      returning 1
    )`
}

/**
 * Records that an effect is about to be called, before it is: for an attempt, if it is still its worker's. `began` is false
 * when the effect has happened (and `happened` says so, unless it did at this moment), is being called, or is in doubt and
 * `takes` does not name the call that left it so: look then. Waits for a statement that has the same effect's row. Repeating it with the same `call` changes nothing.
 */
export const beginEffect = operation({
  name: 'begin_effect',
  params: { ...attemptParams, ...beginParams },
  columns: { ...fenceColumns, ...beginColumns },
  repeatable: true,
  text: (t, p) => sql`with ${attemptFence(t, p)},
    ${beginSteps(t, p, sql`${p.jobId}, token, null::timestamptz`)}
    select ${fenceAnswer()}, ${beginAnswer()}`,
})

/** {@link beginEffect} outside jobs: nothing fences, the call counts as under way for `holdMs`. */
export const beginEffectOutside = operation({
  name: 'begin_effect_outside',
  params: { ...beginParams, holdMs: 'int4' },
  columns: beginColumns,
  repeatable: true,
  text: (t, p) => sql`with fence as (select false as cancelled),
    ${beginSteps(t, p, sql`null::bigint, null::bigint, clock_timestamp() + ${p.holdMs} * interval '1 millisecond'`)}
    select ${beginAnswer()}`,
})

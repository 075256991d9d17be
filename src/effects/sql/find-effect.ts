import { operation, type Row } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { isEffect, isHeld, keyParams } from './effect-key.ts'

/** What is known of an effect; no row if it was never intended. A plain read. */
export const findEffect = operation({
  name: 'find_effect',
  params: keyParams,
  columns: {
    state: 'text',
    call: 'text',
    calls: 'int4',
    jobId: 'text?',
    token: 'int8?',
    intendedAt: 'instant',
    /** The newest call is under way, as far as can be known. */
    held: 'bool',
    result: 'json?',
  },
  repeatable: true,
  text: (
    t,
    p,
  ) => sql`select e.state::text as state, e.call::text as call, e.calls, e.job_id::text as job_id, e.token,
      (extract(epoch from e.intended_at) * 1000)::int8 as intended_at, ${isHeld(t)} as held, e.result::text as result
    from ${t.effect} e where ${isEffect(p)}`,
})

export type FoundEffect = Row<typeof findEffect>

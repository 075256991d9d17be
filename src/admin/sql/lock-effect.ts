import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { isEffect, keyParams } from '../../effects/sql/effect-key.ts'

/**
 * First step of a decision, in a transaction: locks the effect, so that what is read of it afterwards, by a statement with
 * a snapshot of its own, stays so. Waits for a call that is just being recorded.
 */
export const lockEffect = operation({
  name: 'lock_effect',
  params: keyParams,
  columns: { state: 'text' },
  text: (t, p) => sql`select e.state::text as state from ${t.effect} e where ${isEffect(p)} for update of e`,
})

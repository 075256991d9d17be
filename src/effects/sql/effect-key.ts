import type { Placeholder } from '../../driver/sql.ts'
import { type Objects, type SqlFragment, sql } from '../../driver/sql.ts'

/** What names an effect. */
export const keyParams = { tenant: 'text', name: 'text', key: 'text' } as const

export type KeyPlaceholders = { readonly [K in keyof typeof keyParams]: Placeholder }

/** True for the row of the effect, under the alias `e`. */
export function isEffect(p: KeyPlaceholders): SqlFragment {
  return sql`(e.tenant = ${p.tenant} and e.name = ${p.name} and e.key = ${p.key})`
}

/**
 * True while the newest call of an effect `e` counts as under way: its attempt is still its worker's and not over, or,
 * outside jobs, its time is not up. Once false for a call it stays so.
 */
export function isHeld(t: Objects): SqlFragment {
  return sql`(e.state = 'intended' and (coalesce(e.held_until > clock_timestamp(), false) or (
      (select true from ${t.lease} l where l.token = e.token and e.job_id = any (l.job_ids) limit 1) is true
      and (select true from ${t.outcome} o where o.job_id = e.job_id and o.token = e.token limit 1) is not true
      and (select true from ${t.attempt} a where a.job_id = e.job_id and a.token + 0 = e.token limit 1) is not true)))`
}

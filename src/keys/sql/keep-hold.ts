import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { spaceParams } from './key-params.ts'

/** Keeps a snapshot of the server, or a time. Repeated, it makes another hold, which ends by itself. */
export const takeHold = operation({
  name: 'take_hold',
  params: { ...spaceParams, holder: 'text', leaseMs: 'int4', at: 'instant?' },
  columns: { id: 'int8', heldAt: 'instant', seen: 'text' },
  repeatable: true,
  text: (
    t,
    p,
  ) => sql`insert into ${t.key_hold} (held_at, expires_at, ephemeral, is_exact, tenant, holder, held)
    select coalesce(${p.at}, clock_timestamp()), clock_timestamp() + ${p.leaseMs} * interval '1 millisecond', ${p.ephemeral},
      ${p.at} is null, ${p.tenant}, ${p.holder}, pg_current_snapshot()
    returning id, (extract(epoch from held_at) * 1000)::int8 as held_at, held::text as seen`,
})

/** Has a live hold live on; no row if it has run out. Safe to repeat. */
export const renewHold = operation({
  name: 'renew_hold',
  params: { id: 'int8', leaseMs: 'int4' },
  columns: { id: 'int8' },
  repeatable: true,
  text: (
    t,
    p,
  ) => sql`update ${t.key_hold} h set expires_at = clock_timestamp() + ${p.leaseMs} * interval '1 millisecond'
    where h.id = ${p.id} and h.expires_at > clock_timestamp() returning h.id`,
})

/** Ends a hold. Safe to repeat. */
export const releaseHold = operation({
  name: 'release_hold',
  params: { id: 'int8' },
  columns: { released: 'int8' },
  repeatable: true,
  text: (t, p) => sql`with gone as (delete from ${t.key_hold} h where h.id = ${p.id} returning 1)
    select count(*) as released from gone`,
})

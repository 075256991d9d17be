import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { spaceParams } from './key-params.ts'

/** Gives a live key an expiry, or takes it away. Locks its row. Safe to repeat: the later one counts. */
export const extendKey = operation({
  name: 'extend_key',
  params: { ...spaceParams, key: 'text', ttlMs: 'int8?' },
  columns: { done: 'bool', revision: 'int8', expiresAt: 'instant?' },
  repeatable: true,
  text: (t, p) => sql`select e.done, e.revision, (extract(epoch from e.expires_at) * 1000)::int8 as expires_at
    from ${t.key_extend}(${p.tenant}, ${p.ephemeral}, ${p.key}, ${p.ttlMs}) e`,
})

import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { spaceParams } from './key-params.ts'

/** Adds to the number in a key. Locks its row. `problem`: nothing was changed. Not to be repeated: it would add again. */
export const incrementKey = operation({
  name: 'increment_key',
  params: { ...spaceParams, key: 'text', by: 'int8', ttlMs: 'int8?' },
  columns: { problem: 'text?', total: 'int8?', revision: 'int8?', expiresAt: 'instant?' },
  text: (
    t,
    p,
  ) => sql`select i.problem, i.total, i.revision, (extract(epoch from i.expires_at) * 1000)::int8 as expires_at
    from ${t.key_increment}(${p.tenant}, ${p.ephemeral}, ${p.key}, ${p.by}, ${p.ttlMs}) i`,
})

import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Fails with HF010 unless the lock is held with that token. Locks the resource's row `for key share` to the end of the
 * transaction, so that the next grant comes after it; waits for a grant that is not committed.
 */
export const assertLock = operation({
  name: 'assert_lock',
  params: { resource: 'text', token: 'int8', tenant: 'text', durability: 'text' },
  columns: { asserted: 'bool' },
  repeatable: true,
  text: (t, p) => sql`
    select ${t.assert_lock}(${p.resource}, ${p.token}, ${p.tenant}, ${p.durability}) is not null as asserted
    where ${p.token} is not null`,
})

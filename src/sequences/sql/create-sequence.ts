import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { sequenceColumns } from './sequence-columns.ts'

/**
 * Creates a sequence, or gives the one that has its name. Waits for a transaction that has created or deleted it and has
 * not ended. Locks nothing that exists.
 */
export const createSequence = operation({
  name: 'create_sequence',
  params: { tenant: 'text', name: 'text', initial: 'int8', increment: 'int8', max: 'int8?' },
  columns: { isNew: 'bool', ...sequenceColumns },
  text: (
    t,
    p,
  ) => sql`select c.is_new, (c.known).name, (c.known).current, (c.known).initial, (c.known).increment,
      (c.known).max_value as max, (c.known).revision,
      (extract(epoch from (c.known).created_at) * 1000)::int8 as created_at
    from ${t.create_sequence}(${p.tenant}, ${p.name}, ${p.initial}, ${p.increment}, ${p.max}) c`,
})

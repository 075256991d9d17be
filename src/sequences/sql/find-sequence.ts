import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { readSequence, sequenceColumns } from './sequence-columns.ts'

/** Reads one sequence as it is committed, or as the transaction has left it. No row: there is none. Locks nothing. */
export const findSequence = operation({
  name: 'find_sequence',
  params: { tenant: 'text', name: 'text' },
  columns: sequenceColumns,
  repeatable: true,
  text: (t, p) =>
    sql`select ${readSequence()} from ${t.sequence} s where s.tenant = ${p.tenant} and s.name = ${p.name}`,
})

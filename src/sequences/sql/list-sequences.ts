import { operation, type Row } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { readSequence, sequenceColumns } from './sequence-columns.ts'

/** A page of a tenant's sequences whose names begin with `prefix`, in the order of their bytes. Locks nothing. */
export const listSequences = operation({
  name: 'list_sequences',
  params: { tenant: 'text', prefix: 'text', after: 'text', limit: 'int4' },
  columns: sequenceColumns,
  repeatable: true,
  // The second condition finds where to begin; reads on to the end of the tenant's where a prefix has less than a page.
  text: (t, p) => sql`select ${readSequence()} from ${t.sequence} s
    where s.tenant = ${p.tenant} and s.name >= ${p.prefix} and pg_catalog.starts_with(s.name, ${p.prefix}) and s.name > ${p.after}
    order by s.name limit ${p.limit}`,
})

export type SequenceRow = Row<typeof listSequences>

import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Deletes a sequence. No row: there was none. Waits for whoever has drawn from it and has not ended. A request that was
 * committed meanwhile may stay behind: it belongs to an id that nobody has any more, and goes with time.
 */
export const deleteSequence = operation({
  name: 'delete_sequence',
  params: { tenant: 'text', name: 'text' },
  columns: { id: 'int8' },
  text: (t, p) => sql`with gone as (
      delete from ${t.sequence} s where s.tenant = ${p.tenant} and s.name = ${p.name} returning s.id
    ), forgotten as (
      delete from ${t.sequence_request} r using gone where r.sequence_id = gone.id
    )
    select id from gone`,
})

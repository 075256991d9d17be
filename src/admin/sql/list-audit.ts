import { operation, type Row } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** What people decided about a subject, oldest first. A plain read. */
export const listAudit = operation({
  name: 'list_audit',
  params: { subject: 'text', limit: 'int4' },
  columns: { at: 'instant', actor: 'text', action: 'text', note: 'text?' },
  repeatable: true,
  text: (t, p) => sql`select (extract(epoch from a.at) * 1000)::int8 as at, a.actor, a.action, a.note from (
      select * from ${t.audit} where left(subject, 255) = left(${p.subject}, 255) and subject = ${p.subject}
      order by id desc limit ${p.limit}
    ) a order by a.id`,
})

export type AuditRow = Row<typeof listAudit>

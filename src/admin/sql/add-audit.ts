import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** Keeps who decided what, and why. For a transaction that does it. */
export const addAudit = operation({
  name: 'add_audit',
  params: { actor: 'text', action: 'text', subject: 'text', note: 'text?' },
  columns: { id: 'int8' },
  text: (t, p) => sql`insert into ${t.audit} (actor, action, subject, note)
    values (${p.actor}, ${p.action}, ${p.subject}, ${p.note}) returning id`,
})

import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/**
 * Runs a program as one statement: all of it, or nothing. Locks the keys that it names first, in their order, and waits
 * for them at most `lock_wait_ms`. What fails in the script is an answer; a serialization failure or a deadlock is raised.
 */
export const runScript = operation({
  name: 'run_script',
  params: {
    tenant: 'text',
    code: 'text',
    kinds: 'text',
    vals: 'text[]',
    keys: 'text[]',
    lockNames: 'text?',
    lockModes: 'text?',
    lockWrites: 'text?',
    lockWaitMs: 'int4',
    timeoutMs: 'int4',
    inTransaction: 'bool',
  },
  columns: {
    reason: 'text?',
    detail: 'text?',
    at: 'int4',
    answer: 'int4',
    key: 'text?',
    value: 'text?',
    revision: 'int8?',
    expiresAt: 'int8?',
    modifiedAt: 'int8?',
    items: 'json?',
  },
  text: (
    t,
    p,
  ) => sql`select r.reason, r.detail, r.at, r.answer, r.key, r.value, r.revision, r.expires_at, r.modified_at, r.items
    from ${t.script_run}(${p.tenant}, ${p.code}::integer[], ${p.kinds}::integer[], ${p.vals}, ${p.keys},
      ${p.lockNames}::text[], ${p.lockModes}::integer[], ${p.lockWrites}::boolean[], ${p.lockWaitMs}, ${p.timeoutMs}, ${p.inTransaction}) r`,
})

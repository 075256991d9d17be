import type { ColumnType } from '../../driver/operation.ts'
import { type SqlFragment, sql } from '../../driver/sql.ts'

/** What is read of a sequence. */
export const sequenceColumns = {
  name: 'text',
  current: 'int8',
  initial: 'int8',
  increment: 'int8',
  max: 'int8?',
  revision: 'int8',
  createdAt: 'instant',
} as const satisfies Record<string, ColumnType>

/** {@link sequenceColumns} of a row under the alias `s`. */
export function readSequence(): SqlFragment {
  return sql`s.name, s.current, s.initial, s.increment, s.max_value as max, s.revision,
      (extract(epoch from s.created_at) * 1000)::int8 as created_at`
}

import { type SqlFragment, sql } from '../../driver/sql.ts'

/** Where a key is. */
export const spaceParams = { tenant: 'text', ephemeral: 'bool' } as const

/** The columns of an entry, as {@link entryAnswer} gives them. */
export const entryColumns = {
  value: 'bytes',
  revision: 'int8',
  expiresAt: 'instant?',
  modifiedAt: 'instant',
} as const

/** The columns of an entry `e`. */
export function entryAnswer(): SqlFragment {
  return sql`encode(e.value, 'hex') as value, e.revision,
      (extract(epoch from e.expires_at) * 1000)::int8 as expires_at, (extract(epoch from e.modified_at) * 1000)::int8 as modified_at`
}

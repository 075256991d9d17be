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

/** The columns of an entry `e`. `date_part` gives a float, which is a microsecond cheaper than the numeric of `extract`. */
export function entryAnswer(): SqlFragment {
  return sql`encode(e.value, 'hex') as value, e.revision,
      (date_part('epoch', e.expires_at) * 1000)::int8 as expires_at, (date_part('epoch', e.modified_at) * 1000)::int8 as modified_at`
}

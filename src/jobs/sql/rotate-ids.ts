import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'

/** Closes the range of ids in use if it is six hours old, so that retention can drop it later. Safe to repeat. */
export const rotateIds = operation({
  name: 'rotate_ids',
  params: {},
  columns: { rotated: 'bool' },
  repeatable: true,
  text: (t) => sql`select ${t.rotate_ids}() as rotated`,
})

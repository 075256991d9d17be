import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { attemptFence, attemptParams, fenceAnswer, fenceColumns } from './attempt-fence.ts'

/** Asserts, in a transaction, that an attempt is still its worker's; holds it so until the transaction ends. */
export const fenceAttempt = operation({
  name: 'fence_attempt',
  params: attemptParams,
  columns: fenceColumns,
  repeatable: true,
  text: (t, p) => sql`with ${attemptFence(t, p)} select ${fenceAnswer()}`,
})

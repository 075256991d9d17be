import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { spaceParams } from './key-params.ts'

/** Deletes a live key if the conditions hold. Locks its row. Not to be repeated: the second time it is absent. */
export const deleteKey = operation({
  name: 'delete_key',
  params: { ...spaceParams, key: 'text', ifValue: 'bytes?', ifRevision: 'int8?' },
  columns: { done: 'bool', revision: 'int8' },
  text: (t, p) => sql`select d.done, d.revision
    from ${t.key_delete}(${p.tenant}, ${p.ephemeral}, ${p.key}, ${p.ifValue}, ${p.ifRevision}) d`,
})

/** {@link deleteKey} for several keys in one transaction; their rows are locked in the order of the keys. `item` counts from 1. */
export const deleteKeys = operation({
  name: 'delete_keys',
  params: { ...spaceParams, items: 'json' },
  columns: { item: 'int8', done: 'bool', revision: 'int8' },
  text: (t, p) => sql`select d.item, d.done, d.revision
    from ${t.key_delete_many}(${p.tenant}, ${p.ephemeral}, ${p.items}) d order by d.item`,
})

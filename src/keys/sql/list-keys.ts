import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { spaceParams } from './key-params.ts'

/**
 * A page of live keys in the order of their bytes, and a last row without a key: the snapshot and the time of the page, where
 * it was of now. Plain reads; as of the past they go back over what was changed since.
 */
export const listKeys = operation({
  name: 'list_keys',
  params: {
    ...spaceParams,
    low: 'text',
    above: 'bool',
    high: 'text?',
    depth: 'int4?',
    maxRows: 'int4',
    seen: 'text?',
    atMs: 'int8?',
    exact: 'bool',
  },
  columns: {
    key: 'text?',
    value: 'bytes?',
    revision: 'int8?',
    expiresAt: 'instant?',
    modifiedAt: 'instant?',
    seenNow: 'text?',
    nowMs: 'int8?',
  },
  repeatable: true,
  text: (t, p) => sql`select p.key, encode(p.value, 'hex') as value, p.revision,
      (extract(epoch from p.expires_at) * 1000)::int8 as expires_at, (extract(epoch from p.modified_at) * 1000)::int8 as modified_at,
      p.seen_now, p.now_ms
    from ${t.key_page}(${p.tenant}, ${p.ephemeral}, ${p.low}, ${p.above}, ${p.high}, ${p.depth}, ${p.maxRows},
      ${p.seen}::pg_catalog.pg_snapshot, ${p.atMs}, ${p.exact}) p`,
})

import { operation } from '../../driver/operation.ts'
import { sql } from '../../driver/sql.ts'
import { spaceParams } from './key-params.ts'

/** Where a watcher begins; described at the function `key_watch_start`. A plain read. */
export const startWatch = operation({
  name: 'start_watch',
  params: { ephemeral: 'bool' },
  columns: { place: 'int8', writers: 'json', seen: 'text', floor: 'int8' },
  repeatable: true,
  text: (
    t,
    p,
  ) => sql`select s.place, pg_catalog.array_to_json(s.writers)::text as writers, s.seen::text as seen, s.floor
    from ${t.key_watch_start}(${p.ephemeral}) s`,
})

/** The changes behind a place, up to the first gap that may be filled; described at the function `key_changes`. A plain read. */
export const readChanges = operation({
  name: 'read_changes',
  params: {
    ...spaceParams,
    low: 'text',
    high: 'text?',
    depth: 'int4?',
    after: 'int8',
    gapTo: 'int8?',
    gapWriters: 'text[]',
    seen: 'text?',
    maxPlaces: 'int4',
  },
  columns: {
    place: 'int8?',
    kind: 'text?',
    key: 'text?',
    value: 'bytes?',
    revision: 'int8?',
    expiresAt: 'instant?',
    changedAt: 'instant?',
    nextGapTo: 'int8?',
    nextWriters: 'json?',
  },
  repeatable: true,
  text: (
    t,
    p,
  ) => sql`select c.place, c.kind::text as kind, c.key, encode(c.value, 'hex') as value, c.revision,
      (extract(epoch from c.expires_at) * 1000)::int8 as expires_at, (extract(epoch from c.changed_at) * 1000)::int8 as changed_at,
      c.next_gap_to, pg_catalog.array_to_json(c.next_writers)::text as next_writers
    from ${t.key_changes}(${p.tenant}, ${p.ephemeral}, ${p.low}, ${p.high}, ${p.depth}, ${p.after}, ${p.gapTo}, ${p.gapWriters},
      ${p.seen}::pg_catalog.pg_snapshot, ${p.maxPlaces}) c`,
})

/** Has writers announce what they change of these keys, for `ms`. Safe to repeat. */
export const keepWatch = operation({
  name: 'keep_watch',
  params: { watcher: 'text', ...spaceParams, prefix: 'text', ms: 'int4' },
  columns: { kept: 'text' },
  repeatable: true,
  text: (t, p) =>
    sql`select ${t.key_watch_keep}(${p.watcher}::uuid, ${p.ephemeral}, ${p.tenant}, ${p.prefix}, ${p.ms})::text as kept`,
})

/** Ends what {@link keepWatch} began. Safe to repeat. */
export const endWatch = operation({
  name: 'end_watch',
  params: { watcher: 'text' },
  columns: { ended: 'int8' },
  repeatable: true,
  text: (
    t,
    p,
  ) => sql`with gone as (delete from ${t.key_watcher} w where w.id = ${p.watcher}::uuid returning 1)
    select count(*) as ended from gone`,
})

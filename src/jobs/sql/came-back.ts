import { channelName, type SqlFragment, sql } from '../../driver/sql.ts'

/**
 * A scalar that tells workers where `rows` (queue, priority, seq) came to, when it commits: places that a worker may have
 * looked at for the last time, since jobs keep theirs when they come back. A hint, for workers that use
 * low-water marks; the others look there anyway.
 */
export function tellPlaces(rows: SqlFragment): SqlFragment {
  return sql`(select count(pg_notify(${channelName}, told.payload)) from (
      select 'back:' || to_hex(hashtextextended(queue, 0)) || ':' || priority || ':' || min(seq) || ':' || max(seq) as payload
      from ${rows} group by queue, priority
    ) told)`
}

/** Where jobs came back to, as {@link tellPlaces} tells it. */
export interface Places {
  /** What stands for the queue in notifications. */
  readonly signal: string
  readonly priority: number
  readonly first: bigint
  readonly last: bigint
}

const FORMAT = /^back:([0-9a-f]{1,16}):(\d):(\d{1,18}):(\d{1,18})$/

/** Reads a notification; undefined if it is none of these, whoever sent it. */
export function readPlaces(payload: string): Places | undefined {
  const [, signal, priority, first, last] = FORMAT.exec(payload) ?? []
  if (signal === undefined) return undefined
  return { signal, priority: Number(priority), first: BigInt(first as string), last: BigInt(last as string) }
}

import { checkNumber } from '../base/check.ts'
import { limits } from '../base/limits.ts'
import { type Database, run } from '../driver/operation.ts'
import { type EntryFacts, KeyEntry } from './key-entry.ts'
import {
  checkFlag,
  checkMoment,
  checkPart,
  checkSpace,
  invalid,
  type Moment,
  type ReadOptions,
} from './key-options.ts'
import { bucketRange, contains, type KeyRange, narrow, prefixRange } from './key-range.ts'
import { listKeys } from './sql/list-keys.ts'

/** Which keys: those of one bucket, those that start with a text, or those from one text to another. */
export interface KeySelection {
  /** What stands before the last `/` of a key: exactly this. Keys without a `/` are in no bucket. */
  readonly bucket?: string | undefined
  /** What keys start with, character by character; an empty one is all keys. */
  readonly prefix?: string | undefined
  /** From `start` (default: the first) to `end` (default: the last), of those that start with `prefix`. */
  readonly range?:
    | {
        readonly prefix?: string | undefined
        readonly start?: string | undefined
        /** Default: true. */
        readonly startInclusive?: boolean | undefined
        readonly end?: string | undefined
        /** Default: false. */
        readonly endInclusive?: boolean | undefined
      }
    | undefined
}

/** What {@link Keys.list} takes. */
export interface ListOptions extends ReadOptions, KeySelection {
  /** Keys of a page: 1 to 4,096. Default: 100. */
  readonly limit?: number | undefined
  /** The cursor that the page before gave, with the same options. Default: the first page. */
  readonly cursor?: string | undefined
}

/** A page of keys. */
export interface KeyPage {
  /** In the order of the keys' bytes in UTF-8. */
  readonly entries: readonly KeyEntry[]
  /** Give it as `cursor` for the next page; `null`: this is the last. */
  readonly cursor: string | null
}

interface Cursor extends Moment {
  readonly after: string
  readonly exact: boolean
}

/** @throws {InvalidArgumentError} Not exactly one of `bucket`, `prefix` and `range`, or no text. */
export function checkSelection({ bucket, prefix, range }: KeySelection): KeyRange {
  if ([bucket, prefix, range].filter((given) => given !== undefined).length !== 1)
    throw invalid('bucket', 'is to be given, or "prefix", or "range": one of them')
  if (bucket !== undefined) return bucketRange(checkPart('bucket', bucket))
  if (prefix !== undefined) return prefixRange(checkPart('prefix', prefix))
  if (typeof range !== 'object' || range === null) throw invalid('range', 'must be an object')
  const part = (name: 'prefix' | 'start' | 'end') =>
    range[name] === undefined ? undefined : checkPart(`range.${name}`, range[name])
  return narrow(prefixRange(part('prefix') ?? ''), {
    start: part('start'),
    startInclusive: checkFlag('range.startInclusive', range.startInclusive ?? true),
    end: part('end'),
    endInclusive: checkFlag('range.endInclusive', range.endInclusive),
  })
}

/** One page. The first one's moment is in its cursor: all pages are of it. */
export async function listPage(database: Database, options: ListOptions): Promise<KeyPage> {
  const space = checkSpace(options)
  const range = checkSelection(options)
  const moment = checkMoment(options.asOf)
  const limit = checkNumber('limit', options.limit, limits.keyPageRows)
  const from = options.cursor === undefined ? undefined : readCursor(options.cursor, range)
  const { seen, atMs, exact } = from ?? { ...moment, exact: moment.seen !== null }
  const rows = await run(database, listKeys, {
    ...space,
    ...range,
    ...(from === undefined ? {} : { low: from.after, above: true }),
    // One more than is given tells whether there is a next page.
    maxRows: limit + 1,
    seen,
    atMs,
    exact,
  })
  const found = rows.filter((row) => row.key !== null)
  const entries = found.slice(0, limit).map((row) => new KeyEntry(row as EntryFacts))
  const last = found.length > limit ? entries.at(-1) : undefined
  const own = rows.find((row) => row.key === null)
  const pinned = atMs === null ? { seen: own?.seenNow ?? null, atMs: own?.nowMs ?? null } : { seen, atMs }
  return { entries, cursor: last === undefined ? null : cursorOf({ ...pinned, exact, after: last.key }) }
}

function cursorOf({ seen, atMs, exact, after }: Cursor): string {
  return Buffer.from(JSON.stringify([after, String(atMs), seen, exact])).toString('base64url')
}

function readCursor(text: string, range: KeyRange): Cursor {
  try {
    const [after, atMs, seen, exact] = JSON.parse(Buffer.from(text, 'base64url').toString()) as unknown[]
    if (
      typeof after === 'string' &&
      contains(range, after) &&
      typeof atMs === 'string' &&
      /^-?\d{1,16}$/.test(atMs) &&
      (seen === null || (typeof seen === 'string' && /^\d+:\d+:[\d,]*$/.test(seen))) &&
      typeof exact === 'boolean'
    ) {
      return { after, atMs: BigInt(atMs), seen, exact }
    }
  } catch {
    // Said below.
  }
  throw invalid('cursor', 'must be the cursor that a page before gave, with the same options')
}

import { randomUUID } from 'node:crypto'
import { monotonicMs } from '../base/clock.ts'
import { UnavailableError } from '../base/errors.ts'
import { sleep } from '../base/sleep.ts'
import { Wakeup } from '../base/wakeup.ts'
import type { Hints } from '../driver/hints.ts'
import { type Database, type Row, run, runOne } from '../driver/operation.ts'
import { KeyEntry } from './key-entry.ts'
import type { KeySelection } from './key-list.ts'
import type { KeyOptions, Space } from './key-options.ts'
import type { KeyRange } from './key-range.ts'
import { sweepKeys } from './sql/prune-keys.ts'
import { endWatch, keepWatch, readChanges, startWatch } from './sql/watch-keys.ts'

/**
 * A watcher reads the log of changes in the order of their places, and remembers how far it is. A place that is missing is a
 * transaction that has not ended, or has come to nothing: it reads no further until everybody who was at work when it saw
 * the gap has ended. So nothing is passed over, and nothing comes twice. Hints only make it look sooner.
 */

/** What {@link Keys.watch} takes. */
export interface WatchOptions extends Pick<KeyOptions, 'durability' | 'tenant'> {
  /** Ends the watch. Default: it ends when the loop is left. */
  readonly signal?: AbortSignal | undefined
  /** Go on behind this place: that of the last change which you have dealt with. Default: from now on. */
  readonly from?: bigint | undefined
}

/** Which keys to watch. */
export type Watched = string | { readonly key: string } | Pick<KeySelection, 'bucket' | 'prefix'>

/** One committed change of a key. `resync`: changes were missed; read afresh what you need, and go on. */
export type KeyChange =
  | {
      readonly kind: 'set' | 'extended'
      /** Give it as `from` to go on behind this change. */
      readonly place: bigint
      readonly key: string
      readonly revision: bigint
      /** The key as this change left it. */
      readonly entry: KeyEntry
      /** When it was changed, by the database's clock. */
      readonly changedAt: Date
    }
  | {
      /** `expired` is told when the key is swept, some time after it became absent. */
      readonly kind: 'deleted' | 'expired'
      readonly place: bigint
      readonly key: string
      readonly revision: bigint
      readonly changedAt: Date
    }
  | { readonly kind: 'resync'; readonly place: bigint }

export interface WatchParts {
  readonly database: Database
  readonly hints: Hints
  readonly space: Space
  readonly range: KeyRange
  /** What watched keys start with. */
  readonly prefix: string
  readonly from: bigint | undefined
  readonly signal: AbortSignal
  /** Called when iterating has ended. */
  readonly onEnd: () => void
}

interface Position {
  readonly after: bigint
  readonly gapTo: bigint | null
  readonly gapWriters: readonly string[]
  /** At the start: only what is not in this snapshot, up to `gapTo`. */
  readonly seen: string | null
}

const TOPIC = 'keys'
const MAX_PLACES = 1000
/** How long it counts on hints, and how long without them. */
const POLL_MS = 5000
const POLL_UNHEARD_MS = 1000
/** A gap is mostly a transaction that ends in a moment. */
const GAP_MS = 20
const GAP_MAX_MS = 500
const KEEP_MS = 60_000
const KEEP_EVERY_MS = 20_000
const RETRY_MS = 1000
const SWEEP_AT_ONCE = 1000

/** Changes of keys as they are committed: iterate over it. Ends when its signal aborts or you leave the loop. */
export class KeyWatch implements AsyncIterable<KeyChange, void> {
  readonly #parts: WatchParts
  readonly #id = randomUUID()
  readonly #wakeup = new Wakeup()
  readonly #changes: AsyncGenerator<KeyChange, void>
  readonly #start: Promise<Position>
  #keptMs = Number.NEGATIVE_INFINITY

  /** @internal Use `app.keys.watch`. */
  constructor(parts: WatchParts) {
    this.#parts = parts
    this.#start = parts.from === undefined ? this.#begin() : Promise.resolve(behind(parts.from))
    // Told to who awaits `started` or iterates.
    this.#start.catch(() => {})
    this.#changes = this.#run()
  }

  /**
   * Resolves once every change that commits from now on will be told.
   *
   * @throws {UnavailableError} The database cannot be reached. Iterating goes on trying, and then tells a `resync` first.
   */
  get started(): Promise<void> {
    return this.#start.then(() => {})
  }

  [Symbol.asyncIterator](): AsyncGenerator<KeyChange, void> {
    return this.#changes
  }

  async *#run(): AsyncGenerator<KeyChange, void> {
    const { hints, signal } = this.#parts
    const off = hints.on(TOPIC, () => this.#wakeup.wake())
    try {
      let position: Position | undefined
      let gapMs = GAP_MS
      let isFirst = true
      while (!signal.aborted) {
        try {
          if (position === undefined) {
            position = isFirst ? await this.#start : await this.#begin()
            if (!isFirst) yield { kind: 'resync', place: position.after }
          }
          await this.#keep()
          const page: Page = await this.#read(position)
          for (const change of page.changes) {
            yield change
            if (signal.aborted) return
          }
          isFirst = false
          position = page.next
          if (page.more) {
            gapMs = GAP_MS
            continue
          }
          if (position === undefined) continue
          if (position.gapTo === null) {
            gapMs = GAP_MS
            await this.#wakeup.sleep(hints.up ? POLL_MS : POLL_UNHEARD_MS, signal)
          } else {
            await sleep(position.gapWriters.length === 0 ? 0 : gapMs, signal)
            gapMs = Math.min(gapMs * 2, GAP_MAX_MS)
          }
        } catch (error) {
          if (!(error instanceof UnavailableError)) throw error
          isFirst = false
          await sleep(RETRY_MS * (0.5 + Math.random()), signal)
        }
      }
    } finally {
      off()
      this.#parts.onEnd()
      await run(this.#parts.database, endWatch, { watcher: this.#id }).catch(() => {
        // It is forgotten after a minute.
      })
    }
  }

  async #begin(): Promise<Position> {
    const { database, space } = this.#parts
    await this.#keep()
    const { place, writers, seen, floor } = await runOne(database, startWatch, {
      ephemeral: space.ephemeral,
    })
    const gapWriters = writers as readonly string[]
    if (gapWriters.length === 0) return behind(place)
    return { after: floor, gapTo: place, gapWriters, seen }
  }

  /** Says again in time that somebody watches. */
  async #keep(): Promise<void> {
    if (monotonicMs() - this.#keptMs < KEEP_EVERY_MS) return
    const { database, space, prefix } = this.#parts
    const ms = monotonicMs()
    await run(database, keepWatch, { watcher: this.#id, ...space, prefix, ms: KEEP_MS })
    // Workers do it too; where there are none, those who watch hear of expired keys all the same.
    await run(database, sweepKeys, { ephemeral: space.ephemeral, maxRows: SWEEP_AT_ONCE })
    this.#keptMs = ms
  }

  async #read(position: Position): Promise<Page> {
    const { database, space, range } = this.#parts
    const { low, high, depth } = range
    const rows = await run(database, readChanges, {
      ...space,
      ...position,
      low,
      high,
      depth,
      maxPlaces: MAX_PLACES,
    })
    const last = rows.at(-1)
    if (last === undefined || last.place === null) return { changes: [], next: undefined, more: false }
    const changes = rows.slice(0, -1).map(changeOf)
    if (position.seen !== null && last.place !== position.gapTo) {
      return {
        changes,
        next: { ...position, gapWriters: last.nextWriters as readonly string[] },
        more: false,
      }
    }
    const isOpen = last.nextGapTo !== null && position.seen === null
    const next = isOpen
      ? {
          after: last.place,
          gapTo: last.nextGapTo,
          gapWriters: last.nextWriters as readonly string[],
          seen: null,
        }
      : behind(last.place)
    return { changes, next, more: last.place > position.after && !isOpen }
  }
}

interface Page {
  readonly changes: readonly KeyChange[]
  /** `undefined`: what comes next is gone from the log. */
  readonly next: Position | undefined
  /** There may be more at once. */
  readonly more: boolean
}

function behind(after: bigint): Position {
  return { after, gapTo: null, gapWriters: [], seen: null }
}

/** What a row with a key has. */
interface ChangedRow {
  readonly place: bigint
  readonly kind: Exclude<KeyChange['kind'], 'resync'>
  readonly key: string
  readonly revision: bigint
  readonly changedAt: Date
}

function changeOf(row: Row<typeof readChanges>): KeyChange {
  const { place, key, revision, changedAt, kind } = row as unknown as ChangedRow
  if (kind === 'deleted' || kind === 'expired') return { kind, place, key, revision, changedAt }
  const entry = new KeyEntry({
    key,
    revision,
    value: row.value as Uint8Array,
    expiresAt: row.expiresAt,
    modifiedAt: changedAt,
  })
  return { kind, place, key, revision, entry, changedAt }
}

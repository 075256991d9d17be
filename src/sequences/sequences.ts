import { checkInt8, checkNumber, checkOneOf, INT8 } from '../base/check.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import { limits } from '../base/limits.ts'
import { type Database, run, runOne } from '../driver/operation.ts'
import type { Reach } from '../driver/reach.ts'
import { CachedSequence, type CachedSequenceOptions } from './cached-sequence.ts'
import {
  checkIdempotencyKey,
  checkListCursor,
  checkPrefix,
  checkSequenceName,
  checkSequenceTenant,
  cursorAfter,
} from './checks.ts'
import { SequenceExhaustedError, SequenceExistsError, SequenceNotFoundError } from './errors.ts'
import type {
  CreateSequenceOptions,
  DrawOptions,
  ListSequencesOptions,
  ReservedRange,
  SequenceInfo,
  SequenceOptions,
  SequencePage,
} from './sequence-options.ts'
import { createSequence } from './sql/create-sequence.ts'
import { deleteSequence } from './sql/delete-sequence.ts'
import { drawValues } from './sql/draw-values.ts'
import { findSequence } from './sql/find-sequence.ts'
import { listSequences, type SequenceRow } from './sql/list-sequences.ts'

/**
 * Numbers that are given once each: `app.sequences`.
 *
 * Values of one sequence rise in the order in which the transactions that drew them commit, without gaps: a transaction
 * that rolls back gives its values back. The price is that drawers of one sequence wait for each other, to the end of
 * the transaction. {@link cached} trades both away for speed.
 */
export class Sequences {
  readonly #reach: Reach

  /** @internal */
  constructor(reach: Reach) {
    this.#reach = reach
  }

  /**
   * Creates a sequence; with `tx` it is there when your transaction commits. Never changes one that exists.
   *
   * @param name 1 to 1,024 bytes of UTF-8, one line; outer blanks do not count.
   * @throws {SequenceExistsError} There is one of that name, and `ifExists` is `'throw'` or its settings are others.
   * @throws {InvalidArgumentError} An argument is out of range. Nothing was sent, as with the next two.
   * @throws {OutsideTransactionError} Called without `tx` inside a transaction of the app.
   * @throws {TransactionRequiredError} `tx` is not an open transaction of a known driver.
   * @throws {OutcomeUnknownError} The answer was lost: it may be there. Safe to repeat with `ifExists: 'keep'`.
   * @throws {UnavailableError} The database cannot be reached; nothing was created.
   *
   * @example
   * await app.sequences.create('invoices', { initial: 1000, ifExists: 'keep' }) // the first value is 1001
   */
  async create(name: string, options: CreateSequenceOptions = {}): Promise<SequenceInfo> {
    const place = placeOf(name, options)
    const initial = checkInt8('initial', options.initial ?? 0n)
    const increment = checkInt8('increment', options.increment ?? 1n, { min: 1n, max: INT8.max })
    const max =
      options.max === undefined ? null : checkInt8('max', options.max, { min: initial, max: INT8.max })
    const ifExists = checkOneOf('ifExists', options.ifExists ?? 'throw', ['throw', 'keep'])
    const settings = { initial, increment, max }
    const { isNew, ...row } = await runOne(this.#reach.at(options.tx), createSequence, {
      ...place,
      ...settings,
    })
    const isSame = row.initial === initial && row.increment === increment && row.max === max
    if (!isNew && (ifExists === 'throw' || !isSame)) throw new SequenceExistsError(factsOf(place))
    return infoOf(row)
  }

  /**
   * Draws the next value. It is the caller's for good once its transaction is committed: when this resolves, or with `tx`
   * when yours commits. If that rolls back, the next caller is given the value.
   *
   * Waits while an open transaction has drawn from the sequence: keep such transactions short. Committed values survive
   * a crash of the server, whatever `synchronous_commit` says.
   *
   * @throws {SequenceNotFoundError} There is no such sequence; none is made.
   * @throws {SequenceExhaustedError} There is no value left. Nothing was drawn.
   * @throws {InvalidArgumentError} An argument is out of range, or the key belongs to a request of another count.
   * @throws {OutsideTransactionError} {@link TransactionRequiredError} Nothing was sent.
   * @throws {OutcomeUnknownError} The answer was lost: a value may be drawn that nobody has, a gap. A repetition with the
   *   same `idempotencyKey` is given that value.
   * @throws {UnavailableError} The database cannot be reached; nothing was drawn.
   *
   * @example
   * const number = await app.sequences.next('invoices', { idempotencyKey: `order-${order.id}` })
   */
  async next(name: string, options: DrawOptions = {}): Promise<bigint> {
    return (await this.#draw(name, 1n, options)).first
  }

  /**
   * Draws `count` values at once that follow one another. As {@link next} in all else.
   *
   * @param count 1 to 2^63-1.
   * @throws What {@link next} throws. {@link SequenceExhaustedError}: `available` says how many could be had.
   *
   * @example
   * const { first, last } = await app.sequences.reserve('labels', 500)
   */
  async reserve(name: string, count: number | bigint, options: DrawOptions = {}): Promise<ReservedRange> {
    return await this.#draw(name, checkInt8('count', count, { min: 1n, max: INT8.max }), options)
  }

  /**
   * Reads a sequence, without drawing from it or waiting.
   *
   * @returns What is committed, or what your transaction has left; `undefined` if there is no such sequence.
   * @throws {InvalidArgumentError} {@link OutsideTransactionError} {@link TransactionRequiredError} {@link UnavailableError}
   */
  async get(name: string, options: SequenceOptions = {}): Promise<SequenceInfo | undefined> {
    const [row] = await run(this.#plannedAnew(options.tx), findSequence, placeOf(name, options))
    return row && infoOf(row)
  }

  /**
   * Deletes a sequence, and what is remembered of requests. Creating it again starts afresh: values come twice then.
   *
   * @returns False if there was none.
   * @throws {OutcomeUnknownError} The answer was lost: it may be gone. What {@link get} throws.
   */
  async delete(name: string, options: SequenceOptions = {}): Promise<boolean> {
    const rows = await run(this.#plannedAnew(options.tx), deleteSequence, placeOf(name, options))
    return rows.length > 0
  }

  /**
   * A page of the tenant's sequences, in the order of the bytes of their names.
   *
   * @throws What {@link get} throws.
   */
  async list(options: ListSequencesOptions = {}): Promise<SequencePage> {
    const limit = checkNumber('limit', options.limit, limits.pageRows)
    const page = {
      tenant: checkSequenceTenant(options.tenant),
      prefix: checkPrefix(options.prefix),
      after: checkListCursor(options.after),
    }
    // One more than is shown tells whether there is a next page.
    const rows = await run(this.#plannedAnew(options.tx), listSequences, { ...page, limit: limit + 1 })
    const last = rows.length > limit ? rows[limit - 1] : undefined
    return {
      sequences: rows.slice(0, limit).map(infoOf),
      next: last && cursorAfter(last.name),
    }
  }

  /**
   * A sequence whose values this process draws in blocks and gives from memory: one statement for `block` values. Values
   * are still given once each, but those of two processes do not rise in the order of their commits, and what is left of
   * a block when the process ends is a gap. Not for use inside transactions.
   *
   * Reads nothing yet. Keep what this returns: each has blocks of its own.
   *
   * @throws {InvalidArgumentError} An argument is out of range.
   *
   * @example
   * const ids = app.sequences.cached('events')
   * const id = await ids.next()
   */
  cached(name: string, options: CachedSequenceOptions = {}): CachedSequence {
    const block = checkNumber('block', options.block, limits.sequenceBlock)
    const { tenant } = placeOf(name, options)
    return new CachedSequence({
      block: BigInt(block),
      reserve: async (count) =>
        await this.reserve(name, count, { tenant: tenant === '' ? undefined : tenant }),
      requireOutside: () => void this.#reach.at(undefined),
    })
  }

  /** For statements whose plans are their own: one that was made while the table was empty must not be kept. */
  #plannedAnew(tx: unknown): Database {
    return { ...this.#reach.at(tx), prepare: false }
  }

  async #draw(name: string, count: bigint, options: DrawOptions): Promise<ReservedRange> {
    const place = placeOf(name, options)
    const key = checkIdempotencyKey(options.idempotencyKey)
    const drawn = await runOne(this.#reach.at(options.tx), drawValues, { ...place, count, key })
    const { status, first, last, increment, available } = drawn
    if (status === 'not-found') throw new SequenceNotFoundError(factsOf(place))
    if (status === 'exhausted')
      throw new SequenceExhaustedError({ ...factsOf(place), count, available: available ?? 0n })
    if (status === 'other-count')
      throw new InvalidArgumentError({
        field: 'idempotencyKey',
        problem: 'belongs to a request for another count of values; use a key for each request',
      })
    return { first: first as bigint, last: last as bigint, increment: increment as bigint, count }
  }
}

/** What names a sequence, checked. */
function placeOf(name: string, options: SequenceOptions): { readonly tenant: string; readonly name: string } {
  return { name: checkSequenceName(name), tenant: checkSequenceTenant(options.tenant) }
}

function factsOf({ name, tenant }: { readonly tenant: string; readonly name: string }) {
  return { sequence: name, tenant }
}

function infoOf({ max, ...row }: SequenceRow): SequenceInfo {
  return {
    ...row,
    max: max ?? undefined,
    available: ((max ?? INT8.max) - row.current) / row.increment,
  }
}

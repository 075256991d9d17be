import { checkInstant, checkName, checkNumber } from '../base/check.ts'
import { monotonicMs } from '../base/clock.ts'
import { limits } from '../base/limits.ts'
import type { Hints } from '../driver/hints.ts'
import { run, runOne } from '../driver/operation.ts'
import type { Reach } from '../driver/reach.ts'
import { KeyValueError } from './errors.ts'
import type { DeleteAnswer, ExtendAnswer, IncrementAnswer, KeyRevision, SetAnswer } from './key-answers.ts'
import { KeyEntry } from './key-entry.ts'
import { KeyHold } from './key-hold.ts'
import { checkSelection, type KeyPage, type ListOptions, listPage } from './key-list.ts'
import {
  type CheckedSet,
  checkBigint,
  checkKeyName,
  checkMoment,
  checkPart,
  checkSet,
  checkSpace,
  checkTtl,
  checkValue,
  type DeleteOptions,
  type GetOptions,
  type HoldOptions,
  invalid,
  type KeyOptions,
  type KeyToSet,
  type ReadOptions,
  type RevisionsOptions,
  type SetOptions,
} from './key-options.ts'
import { prefixRange } from './key-range.ts'
import { KeyWatch, type Watched, type WatchOptions } from './key-watch.ts'
import { deleteKey, deleteKeys } from './sql/delete-key.ts'
import { extendKey } from './sql/extend-key.ts'
import { getEphemeralKey, getKey, getKeyAsOf, getKeyInSnapshot, getKeyRevision } from './sql/get-key.ts'
import { getEphemeralKeys, getKeys, getKeysAsOf } from './sql/get-keys.ts'
import { incrementKey } from './sql/increment-key.ts'
import { takeHold } from './sql/keep-hold.ts'
import { listEphemeralRevisions, listRevisions } from './sql/list-revisions.ts'
import { setEphemeralKey, setEphemeralKeyIf, setKey, setKeyIf, setKeys } from './sql/set-key.ts'

/** Keys with values, revisions and history, in the application's database: `app.keys`. */
export class Keys {
  readonly #reach: Reach
  readonly #hints: Hints
  readonly #watches = new Set<AbortController>()

  /** @internal */
  constructor(parts: { readonly reach: Reach; readonly hints: Hints }) {
    this.#reach = parts.reach
    this.#hints = parts.hints
  }

  /**
   * Reads a key. A key that has expired is absent at once, here and everywhere.
   *
   * @returns `undefined` if the key is absent, or the history does not have what was asked for.
   * @throws {InvalidArgumentError} Nothing was sent, as with the next three.
   * @throws {KeyHoldExpiredError} `asOf` is a hold that has run out.
   * @throws {OutsideTransactionError} Called without `tx` inside `app.transaction`.
   * @throws {TransactionRequiredError} `tx` is not an open transaction of a known driver.
   * @throws {UnavailableError} The database cannot be reached.
   *
   * @example
   * const status = await app.keys.get('jobs/42/status')
   * if (status?.text() === 'completed') return
   */
  async get(key: string, options: GetOptions = {}): Promise<KeyEntry | undefined> {
    const space = checkSpace(options)
    checkKeyName('key', key)
    const { atRevision } = options
    const { seen, atMs } = checkMoment(options.asOf)
    if (atRevision !== undefined && atMs !== null)
      throw invalid('atRevision', 'cannot be given together with "asOf"')
    const database = this.#reach.at(options.tx)
    const read = async () => {
      if (atRevision !== undefined) {
        const revision = checkBigint('atRevision', atRevision, 0n)
        return await run(database, getKeyRevision, { ...space, key, revision })
      }
      if (seen !== null && atMs !== null)
        return await run(database, getKeyInSnapshot, { ...space, key, seen, atMs })
      if (atMs !== null) return await run(database, getKeyAsOf, { ...space, key, atMs })
      return await run(database, space.ephemeral ? getEphemeralKey : getKey, { tenant: space.tenant, key })
    }
    const [row] = await read()
    return row === undefined ? undefined : new KeyEntry({ key, ...row })
  }

  /**
   * Sets a key, if all conditions that are given hold. When it resolves it is committed or, with `tx`, part of your
   * transaction. Waits for transactions that have written the key and not ended.
   *
   * @returns `ok: false` if a condition did not hold: nothing was changed, and the answer has what is there.
   * @throws {InvalidArgumentError} Nothing was sent.
   * @throws {OutsideTransactionError} {@link TransactionRequiredError} Nothing was sent, as with `get`.
   * @throws {OutcomeUnknownError} The connection broke before the answer: the key may be set. With `ifRevision` you can tell
   *   by repeating: it is refused, with your value, if it was.
   * @throws {UnavailableError} The database cannot be reached; nothing was changed.
   *
   * @example
   * const before = await app.keys.get('seat/12')
   * const answer = await app.keys.set('seat/12', 'ann', { ifRevision: before?.revision ?? -1n })
   * if (!answer.ok) console.log(`taken by ${answer.current?.text()}`)
   */
  async set(key: string, value: string | Uint8Array, options: SetOptions = {}): Promise<SetAnswer> {
    const { tenant, ephemeral } = checkSpace(options)
    const set = checkSet(key, value, options)
    const database = this.#reach.at(options.tx)
    if (set.ifAbsent || set.ifPresent || set.ifValue !== null || set.ifRevision !== null) {
      const row = await runOne(database, ephemeral ? setEphemeralKeyIf : setKeyIf, { tenant, ...set })
      return setAnswer(key, row)
    }
    const done = await runOne(database, ephemeral ? setEphemeralKey : setKey, { tenant, ...set })
    return { ok: true, ...done }
  }

  /**
   * Deletes a key, if it is there and the conditions hold. That is a revision of its own; the history keeps the values before.
   *
   * @returns `ok: false` if it was absent, or a condition did not hold.
   * @throws What {@link set} throws. After {@link OutcomeUnknownError} a repetition tells: it is absent, or is deleted now.
   */
  async delete(key: string, options: DeleteOptions = {}): Promise<DeleteAnswer> {
    const { ifValue, ifRevision } = options
    const params = {
      ...checkSpace(options),
      key: checkKeyName('key', key),
      ifValue: ifValue === undefined ? null : checkValue('ifValue', ifValue),
      ifRevision: ifRevision === undefined ? null : checkBigint('ifRevision', ifRevision, -1n),
    }
    const row = await runOne(this.#reach.at(options.tx), deleteKey, params)
    return { ok: row.done, revision: row.revision }
  }

  /** True if the key is there. @throws What {@link get} throws. */
  async exists(key: string, options: GetOptions = {}): Promise<boolean> {
    return (await this.get(key, options)) !== undefined
  }

  /**
   * Has a key expire `ttlMs` from now, whatever its expiry was: 1 ms to 36,525 days. Value and revision stay. Safe to repeat.
   *
   * @returns `ok: false` if it was absent: what has expired is not brought back.
   * @throws What {@link set} throws, but for {@link OutcomeUnknownError}.
   */
  async extend(key: string, ttlMs: number, options: KeyOptions = {}): Promise<ExtendAnswer> {
    const ttl = checkTtl('ttlMs', ttlMs)
    if (ttl === null) throw invalid('ttlMs', 'is required; "persist" takes an expiry away')
    return await this.#extend(key, ttl, options)
  }

  /** Takes the expiry of a key away. Otherwise as {@link extend}. @throws What {@link extend} throws. */
  async persist(key: string, options: KeyOptions = {}): Promise<ExtendAnswer> {
    return await this.#extend(key, null, options)
  }

  /**
   * Adds `by` to the whole number that a key holds in decimal digits, exactly over 64 bits; an absent key counts as 0. `by` may
   * be negative. An expiry stays as it is.
   *
   * @throws {KeyValueError} The value is no such number, or the sum would be none. Nothing was changed; neither is your
   *   transaction aborted.
   * @throws What {@link set} throws. After {@link OutcomeUnknownError} it may have been added.
   *
   * @example
   * const { value } = await app.keys.increment(`hits/${minute}`, 1n, { ttlMs: 60_000, durability: 'ephemeral' })
   */
  async increment(
    key: string,
    by: bigint,
    options: KeyOptions & {
      /** Milliseconds that a key lives which this creates. Default: it does not expire. */
      readonly ttlMs?: number | undefined
    } = {},
  ): Promise<IncrementAnswer> {
    const params = {
      ...checkSpace(options),
      key: checkKeyName('key', key),
      by: checkBigint('by', by),
      ttlMs: checkTtl('ttlMs', options.ttlMs),
    }
    const row = await runOne(this.#reach.at(options.tx), incrementKey, params)
    if (row.total === null || row.revision === null) {
      const problem =
        row.problem === 'out-of-range'
          ? 'would become larger than 64 bits hold'
          : 'is not a whole number of 64 bits'
      throw new KeyValueError({ key, problem })
    }
    return { value: row.total, revision: row.revision, expiresAt: row.expiresAt }
  }

  /**
   * Reads up to 4,096 keys at once, all of one moment.
   *
   * @returns One for each, in the order given; `undefined` for one that is absent.
   * @throws What {@link get} throws; the field of an error names the key: `keys[3]`.
   */
  async getMany(
    keys: readonly string[],
    options: ReadOptions = {},
  ): Promise<readonly (KeyEntry | undefined)[]> {
    const { tenant, ephemeral } = checkSpace(options)
    checkBatch('keys', keys)
    keys.forEach((key, index) => checkKeyName(`keys[${index}]`, key))
    const { seen, atMs } = checkMoment(options.asOf)
    const database = this.#reach.at(options.tx)
    const rows =
      atMs === null
        ? await run(database, ephemeral ? getEphemeralKeys : getKeys, { tenant, keys })
        : await run(database, getKeysAsOf, { tenant, ephemeral, keys, seen, atMs })
    const found = new Map(rows.map((row) => [Number(row.item) - 1, row]))
    return keys.map((key, index) => {
      const row = found.get(index)
      return row === undefined ? undefined : new KeyEntry({ key, ...row })
    })
  }

  /**
   * Sets up to 4,096 keys with one statement in one transaction. Each has conditions of its own and an answer of its own: one
   * that is refused does not keep the others from being set; an error undoes all. Keys are locked in their order, so that two
   * of these calls never wait for each other.
   *
   * @returns One for each, in the order given. A key that comes twice is set twice.
   * @throws What {@link set} throws; the field of an error names the key: `items[3].key`.
   */
  async setMany(items: readonly KeyToSet[], options: KeyOptions = {}): Promise<readonly SetAnswer[]> {
    checkBatch('items', items)
    const checked = items.map((item, index) => checkSet(item.key, item.value, item, `items[${index}].`))
    const params = { ...checkSpace(options), items: JSON.stringify(checked.map(itemToSet)) }
    const rows = await run(this.#reach.at(options.tx), setKeys, params)
    return rows.map((row) => setAnswer(items[Number(row.item) - 1]?.key ?? '', row))
  }

  /**
   * Deletes up to 4,096 keys with one statement in one transaction, as {@link setMany} sets them.
   *
   * @returns One answer for each, in the order given.
   * @throws What {@link delete} throws.
   */
  async deleteMany(
    keys: readonly (string | { readonly key: string; readonly ifRevision?: bigint | undefined })[],
    options: KeyOptions = {},
  ): Promise<readonly DeleteAnswer[]> {
    checkBatch('keys', keys)
    const items = keys.map((item) => (typeof item === 'string' ? { key: item } : item))
    const params = {
      ...checkSpace(options),
      items: JSON.stringify(
        items.map(({ key, ifRevision }, index) => ({
          k: checkKeyName(`keys[${index}]`, key),
          ir:
            ifRevision === undefined
              ? null
              : String(checkBigint(`keys[${index}].ifRevision`, ifRevision, -1n)),
        })),
      ),
    }
    const rows = await run(this.#reach.at(options.tx), deleteKeys, params)
    return rows.map(({ done, revision }) => ({ ok: done, revision }))
  }

  /**
   * A page of keys, in the order of their bytes. All pages are of the moment of the first one, as far as the history has it: a
   * value of `norev` that was replaced meanwhile is left out, or an older one is given.
   *
   * @throws What {@link get} throws.
   *
   * @example
   * const { entries, cursor } = await app.keys.list({ bucket: 'services/mail', limit: 50 })
   */
  async list(options: ListOptions): Promise<KeyPage> {
    return await listPage(this.#reach.at(options.tx), options)
  }

  /**
   * All keys of a selection, page by page, as {@link list} gives them.
   *
   * @throws What {@link list} throws, when the first is asked for.
   *
   * @example
   * for await (const entry of app.keys.all({ prefix: 'carts/' })) console.log(entry.key, entry.json())
   */
  async *all(options: Omit<ListOptions, 'cursor'>): AsyncGenerator<KeyEntry, void> {
    let cursor: string | undefined
    do {
      const page: KeyPage = await this.list({ ...options, cursor })
      yield* page.entries
      cursor = page.cursor ?? undefined
    } while (cursor !== undefined)
  }

  /**
   * What the history has of a key, newest first; also of one that is deleted. Revisions of `norev`, and those that retention
   * has taken away, are not there.
   *
   * @throws What {@link get} throws.
   */
  async revisions(key: string, options: RevisionsOptions = {}): Promise<readonly KeyRevision[]> {
    const { tenant, ephemeral } = checkSpace(options)
    const rows = await run(this.#reach.at(options.tx), ephemeral ? listEphemeralRevisions : listRevisions, {
      tenant,
      key: checkKeyName('key', key),
      before: options.before === undefined ? null : checkBigint('before', options.before, 0n),
      maxRows: checkNumber('limit', options.limit, limits.keyPageRows),
    })
    return rows.map(({ revision, value, modifiedAt }) => ({
      revision,
      modifiedAt,
      entry: value === null ? undefined : new KeyEntry({ key, revision, value, modifiedAt, expiresAt: null }),
    }))
  }

  /**
   * Keeps this moment for reads with `asOf`, until it is released or has run out: renew it before.
   *
   * @param holder Who holds it, for people: 1 to 255 bytes.
   * @throws What {@link get} throws.
   *
   * @example
   * await using now = await app.keys.hold('nightly report', { leaseMs: 600_000 })
   * for await (const entry of app.keys.all({ prefix: 'stock/', asOf: now })) console.log(entry.key, entry.text())
   */
  async hold(holder: string, options: HoldOptions = {}): Promise<KeyHold> {
    const space = checkSpace(options)
    const leaseMs = checkNumber('leaseMs', options.leaseMs, limits.keyHoldMs)
    const at = options.at === undefined ? null : checkInstant('at', options.at)
    const database = this.#reach.at(undefined)
    // PostgreSQL counts from a moment that is not before this one.
    const askedMs = monotonicMs()
    const taken = await runOne(database, takeHold, {
      ...space,
      holder: checkName('holder', holder),
      leaseMs,
      at,
    })
    return new KeyHold(database, { ...taken, holder, isExact: at === null }, askedMs + leaseMs)
  }

  /**
   * Tells every change that is committed from now on, once and in order, or that it has missed some: `resync`. Begins at
   * once; await `started` to know since when. Goes on through broken connections and restarts of the database. Expired keys
   * are told when they are swept. Ends when its signal aborts, the application closes, or you leave the loop.
   *
   * @param watched What keys start with; or one key, or a bucket.
   * @throws {InvalidArgumentError} {@link OutsideTransactionError} From the call; nothing was sent.
   *
   * @example
   * for await (const change of app.keys.watch('flags/')) {
   *   if (change.kind === 'resync') await readAllFlags()
   *   else if (change.kind === 'set') useFlag(change.key, change.entry.boolean())
   * }
   */
  watch(watched: Watched, options: WatchOptions = {}): KeyWatch {
    const space = checkSpace(options)
    const { signal, from } = options
    const place = from === undefined ? undefined : checkBigint('from', from, 0n)
    const { range, prefix } = watchedRange(watched)
    const database = this.#reach.at(undefined)
    const controller = new AbortController()
    const end = () => controller.abort()
    if (signal?.aborted) end()
    signal?.addEventListener('abort', end)
    this.#watches.add(controller)
    const onEnd = () => {
      this.#watches.delete(controller)
      signal?.removeEventListener('abort', end)
    }
    const hints = this.#hints
    return new KeyWatch({
      database,
      hints,
      space,
      range,
      prefix,
      from: place,
      signal: controller.signal,
      onEnd,
    })
  }

  /** @internal Ends all watches. */
  close(): void {
    for (const controller of this.#watches) controller.abort()
  }

  async #extend(key: string, ttlMs: bigint | null, options: KeyOptions): Promise<ExtendAnswer> {
    const params = { ...checkSpace(options), key: checkKeyName('key', key), ttlMs }
    const row = await runOne(this.#reach.at(options.tx), extendKey, params)
    return { ok: row.done, revision: row.revision, expiresAt: row.expiresAt }
  }
}

function setAnswer(
  key: string,
  row: {
    readonly done: boolean
    readonly revision: bigint
    readonly value: Uint8Array | null
    readonly expiresAt: Date | null
    readonly modifiedAt: Date | null
  },
): SetAnswer {
  const { done, revision, value, expiresAt, modifiedAt } = row
  if (done) return { ok: true, revision, expiresAt, modifiedAt: modifiedAt as Date }
  const current =
    value === null || modifiedAt === null
      ? undefined
      : new KeyEntry({ key, value, revision, expiresAt, modifiedAt })
  return { ok: false, revision, current }
}

/** As the function `key_set_many` takes it. Not arrays: the setting `array_nulls` changes what a null in one means. */
function itemToSet({ key, value, ttlMs, ifAbsent, ifPresent, ifValue, ifRevision, norev }: CheckedSet) {
  const hex = (bytes: Uint8Array) => `\\x${Buffer.from(bytes).toString('hex')}`
  return {
    k: key,
    v: hex(value),
    t: ttlMs === null ? null : String(ttlMs),
    a: ifAbsent,
    p: ifPresent,
    iv: ifValue === null ? null : hex(ifValue),
    ir: ifRevision === null ? null : String(ifRevision),
    n: norev,
  }
}

function checkBatch(field: string, items: unknown): void {
  if (!Array.isArray(items)) throw invalid(field, 'must be an array')
  const { max } = limits.keyBatch
  if (items.length > max) throw invalid(field, `may have ${max} items and has ${items.length}`)
}

function watchedRange(watched: Watched) {
  if (typeof watched === 'string')
    return { range: prefixRange(checkPart('prefix', watched)), prefix: watched }
  if (typeof watched !== 'object' || watched === null)
    throw invalid('watched', 'must be text, or an object with "key", "bucket" or "prefix"')
  if ('key' in watched) {
    const key = checkKeyName('key', watched.key)
    // No key holds a NUL: nothing comes between.
    return { range: { low: key, above: false, high: `${key}\u0001`, depth: null }, prefix: key }
  }
  const range = checkSelection(watched)
  return { range, prefix: range.low }
}

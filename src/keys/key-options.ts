import { checkInstant, checkKey, checkName, checkNumber, checkOneOf } from '../base/check.ts'
import type { Durability } from '../base/durability.ts'
import { InvalidArgumentError } from '../base/errors.ts'
import { limits } from '../base/limits.ts'
import { KeyHold } from './key-hold.ts'

/** What every call on keys takes. */
export interface KeyOptions {
  /**
   * `ephemeral` keys are in unlogged tables: writing them is cheaper, and a crash of the server or a failover empties them.
   * Their revisions and places go on all the same. Default: `persistent`.
   */
  readonly durability?: Durability | undefined
  /** Whose keys: 1 to 255 bytes. Default: nobody's, which is a name space of its own. */
  readonly tenant?: string | undefined
  /** Your transaction, of any known driver: the call is part of it. Default: a transaction of its own. */
  readonly tx?: unknown
}

/** Conditions: all that are given have to hold. */
export interface KeyConditions {
  /** The key must be absent: never written, deleted or expired. */
  readonly ifAbsent?: boolean | undefined
  /** The key must be there. */
  readonly ifPresent?: boolean | undefined
  /** The key must be there and have this value, byte by byte. */
  readonly ifValue?: string | Uint8Array | undefined
  /**
   * The key's newest revision must be this one, though it be deleted or expired; `-1n`: it was never written. The `revision`
   * of a refused answer makes the next try succeed if nobody comes between.
   */
  readonly ifRevision?: bigint | undefined
}

/** What {@link Keys.set} takes. */
export interface SetOptions extends KeyOptions, KeyConditions {
  /**
   * Time from now, in milliseconds, after which the key is absent: 1 ms to 36,525 days. Default: it does not expire,
   * whatever it did before.
   */
  readonly ttlMs?: number | undefined
  /** Leave no trace of this value in the history once another comes. Its revision counts all the same. Default: false. */
  readonly norev?: boolean | undefined
}

/** One key of `setMany`. */
export type KeyToSet = Omit<SetOptions, keyof KeyOptions> & {
  readonly key: string
  readonly value: string | Uint8Array
}

/** What {@link Keys.delete} takes. */
export interface DeleteOptions extends KeyOptions, Pick<KeyConditions, 'ifValue' | 'ifRevision'> {}

/** What every read takes. */
export interface ReadOptions extends KeyOptions {
  /**
   * As it was at a time, to the end of that millisecond: exact for one key, once all transactions that were open then have
   * ended. Or as of a hold, which is exact over all keys. Values of `norev` are no part of the history. Default: now.
   */
  readonly asOf?: Date | KeyHold | undefined
}

/** What {@link Keys.get} takes. */
export interface GetOptions extends ReadOptions {
  /** The value that the key had at this revision, if it is kept. Not together with `asOf`. Default: the newest. */
  readonly atRevision?: bigint | undefined
}

/** What {@link Keys.revisions} takes. */
export interface RevisionsOptions extends KeyOptions {
  /** 1 to 4,096. Default: 100. */
  readonly limit?: number | undefined
  /** Only revisions below this one: for the next page, that of the last one shown. Default: all. */
  readonly before?: bigint | undefined
}

/** What {@link Keys.hold} takes. */
export interface HoldOptions extends Pick<KeyOptions, 'durability' | 'tenant'> {
  /** Time until it ends unless it is renewed, in milliseconds: 1 ms to 24 days. Default: 60,000. */
  readonly leaseMs?: number | undefined
  /** A moment of the past, by its time: as exact as reads as of a time. Default: this moment, exact over all keys. */
  readonly at?: Date | undefined
}

const RESERVED = '__holdfast:'
const MIN = -(2n ** 63n)
const MAX = 2n ** 63n - 1n

export function invalid(field: string, problem: string): InvalidArgumentError {
  return new InvalidArgumentError({ field, problem })
}

export interface Space {
  readonly tenant: string
  readonly ephemeral: boolean
}

/** @throws {InvalidArgumentError} Names the option. */
export function checkSpace(options: KeyOptions): Space {
  const { durability = 'persistent', tenant } = options
  return {
    tenant: tenant === undefined ? '' : checkName('tenant', tenant),
    ephemeral: checkOneOf('durability', durability, ['persistent', 'ephemeral']) === 'ephemeral',
  }
}

/** A key: 1 to 1,024 bytes of UTF-8 on one line, and not one of ours. */
export function checkKeyName(field: string, value: unknown): string {
  const key = checkKey(field, value)
  if (key === undefined) throw invalid(field, 'must be text')
  if (key.startsWith(RESERVED)) throw invalid(field, `must not start with "${RESERVED}", which is reserved`)
  return key
}

/** Text that keys start with, or are in: like a key, and it may be empty. */
export function checkPart(field: string, value: unknown): string {
  if (value === '') return ''
  const part = checkKey(field, value)
  if (part === undefined) throw invalid(field, 'must be text')
  return part
}

/** The bytes of a value: text is UTF-8. */
export function checkValue(field: string, value: unknown): Uint8Array {
  const { max } = limits.keyValueBytes
  if (typeof value === 'string') {
    if (/\p{Cs}/u.test(value))
      throw invalid(field, 'must be well-formed text, but has half of a surrogate pair; give bytes instead')
  } else if (!(value instanceof Uint8Array)) {
    throw invalid(field, `must be text or a Uint8Array, not ${value === null ? 'null' : `a ${typeof value}`}`)
  }
  const bytes = typeof value === 'string' ? Buffer.from(value) : value
  if (bytes.length > max) throw invalid(field, `may have ${max} bytes and has ${bytes.length}`)
  return bytes
}

/** A whole number of 64 bits. */
export function checkBigint(field: string, value: unknown, min = MIN): bigint {
  if (typeof value !== 'bigint') throw invalid(field, `must be a bigint, not a ${typeof value}`)
  if (value < min || value > MAX) throw invalid(field, `must be from ${min} to ${MAX}`)
  return value
}

export function checkFlag(field: string, value: unknown): boolean {
  if (value !== undefined && typeof value !== 'boolean')
    throw invalid(field, `must be true or false, not a ${typeof value}`)
  return value ?? false
}

export function checkTtl(field: string, value: unknown): bigint | null {
  const ttlMs = checkNumber(field, value, limits.keyTtlMs)
  return ttlMs === undefined ? null : BigInt(ttlMs)
}

/** What a set is sent with. */
export interface CheckedSet {
  readonly key: string
  readonly value: Uint8Array
  readonly ttlMs: bigint | null
  readonly ifAbsent: boolean
  readonly ifPresent: boolean
  readonly ifValue: Uint8Array | null
  readonly ifRevision: bigint | null
  readonly norev: boolean
}

/** The parameters of a set; `at` is put before the names of fields. */
export function checkSet(key: unknown, value: unknown, options: SetOptions, at = ''): CheckedSet {
  const { ifValue, ifRevision } = options
  return {
    key: checkKeyName(`${at}key`, key),
    value: checkValue(`${at}value`, value),
    ttlMs: checkTtl(`${at}ttlMs`, options.ttlMs),
    ifAbsent: checkFlag(`${at}ifAbsent`, options.ifAbsent),
    // An absent key has no value, and an empty one is a value.
    ifPresent: checkFlag(`${at}ifPresent`, options.ifPresent) || ifValue !== undefined,
    ifValue: ifValue === undefined ? null : checkValue(`${at}ifValue`, ifValue),
    ifRevision: ifRevision === undefined ? null : checkBigint(`${at}ifRevision`, ifRevision, -1n),
    norev: checkFlag(`${at}norev`, options.norev),
  }
}

/** When a read is of: of the snapshot, or of the time. Both `null`: now. */
export interface Moment {
  readonly seen: string | null
  readonly atMs: bigint | null
}

const NOW: Moment = { seen: null, atMs: null }

/**
 * @throws {InvalidArgumentError} Neither a Date nor a hold.
 * @throws {KeyHoldExpiredError} The hold has run out.
 */
export function checkMoment(asOf: unknown): Moment {
  if (asOf === undefined) return NOW
  if (asOf instanceof KeyHold) return asOf.moment()
  return { seen: null, atMs: BigInt(checkInstant('asOf', asOf).getTime()) }
}

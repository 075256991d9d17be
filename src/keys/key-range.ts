/** A part of the keys, in the order of their bytes in UTF-8. */
export interface KeyRange {
  readonly low: string
  /** True if `low` itself is not part of it. */
  readonly above: boolean
  /** What all its keys are below; `null`: no end. */
  readonly high: string | null
  /** Number of characters behind which no `/` may come; `null`: any may. */
  readonly depth: number | null
}

/** Every key that starts with `prefix`, character by character. */
export function prefixRange(prefix: string): KeyRange {
  return { low: prefix, above: false, high: endOfPrefix(prefix), depth: null }
}

/** The keys directly in `bucket`: what stands before the last `/` of a key is its bucket. */
export function bucketRange(bucket: string): KeyRange {
  const prefix = `${bucket}/`
  return { ...prefixRange(prefix), depth: Array.from(prefix).length }
}

/** Compares as PostgreSQL does under `collate "C"`; JavaScript's own order differs beyond U+FFFF. */
export function compareKeys(a: string, b: string): number {
  return Buffer.compare(Buffer.from(a), Buffer.from(b))
}

/** The part of `range` from `start` to `end`. */
export function narrow(
  range: KeyRange,
  bounds: {
    readonly start?: string | undefined
    readonly startInclusive?: boolean | undefined
    readonly end?: string | undefined
    readonly endInclusive?: boolean | undefined
  },
): KeyRange {
  const { start, end } = bounds
  const low =
    start === undefined || compareKeys(start, range.low) < 0
      ? { low: range.low, above: range.above }
      : { low: start, above: bounds.startInclusive === false }
  if (end === undefined) return { ...range, ...low }
  // No key holds a NUL: this is the least that comes behind `end` itself.
  const high = bounds.endInclusive === true ? `${end}\u0001` : end
  return {
    ...range,
    ...low,
    high: range.high !== null && compareKeys(range.high, high) < 0 ? range.high : high,
  }
}

/** True if a key lies in the range, but for its depth. */
export function contains({ low, high }: KeyRange, key: string): boolean {
  return compareKeys(key, low) >= 0 && (high === null || compareKeys(key, high) < 0)
}

const LAST = 0x10ffff

/** The least text above all that start with `prefix`; `null` if there is none. */
function endOfPrefix(prefix: string): string | null {
  const points = Array.from(prefix, (char) => char.codePointAt(0) as number)
  for (let last = points.pop(); last !== undefined; last = points.pop()) {
    // 0xd800 to 0xdfff are halves of pairs, which are no characters.
    if (last < LAST) return String.fromCodePoint(...points, last === 0xd7ff ? 0xe000 : last + 1)
  }
  return null
}

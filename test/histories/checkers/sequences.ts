import { groupBy, type Recorded, spanOf } from '../recorded.ts'
import { type Verdict, verdictOf } from './verdict.ts'

/** A request for values of a sequence that counts by one. */
export interface SequenceCall extends Recorded {
  readonly sequence: string
  readonly count: number
  /** A repetition with the same key is given the same. */
  readonly idempotencyKey?: string | undefined
  readonly range?: { readonly first: bigint; readonly last: bigint } | undefined
}

export interface SequenceRules {
  /** The first value that may be handed out. Default: 1. */
  readonly from?: bigint
  readonly least?: number
}

const LEAST_ALLOCATIONS = 25

/**
 * No value is given twice, ranges are whole, a repeated request is given what it was given before; and in one row of a
 * database: values rise in time, and only requests whose answer was lost explain a gap.
 */
export function checkSequences(
  calls: readonly SequenceCall[],
  { from = 1n, least = LEAST_ALLOCATIONS }: SequenceRules = {},
): Verdict {
  const given = calls.filter(isGiven)
  const violations = [...groupBy(calls, ({ sequence }) => sequence)].flatMap(([sequence, ofSequence]) => {
    const answered = ofSequence.filter(isGiven)
    const allocations = firstOfEachKey(answered)
    return [
      ...malformed(answered, from),
      ...changedRepeats(answered),
      ...sharedValues(allocations),
      ...fallingValues(allocations),
      ...unexplainedGaps(sequence, ofSequence, from),
    ]
  })
  return verdictOf(
    { checker: 'sequence', promise: 'no value of a sequence is given twice, and none is lost' },
    { violations, work: firstOfEachKey(given).length, least },
  )
}

type Given = SequenceCall & { readonly range: { readonly first: bigint; readonly last: bigint } }

function isGiven(call: SequenceCall): call is Given {
  return call.outcome === 'ok' && call.range !== undefined
}

/** An answer to a repetition is no allocation of its own. */
function firstOfEachKey(given: readonly Given[]): readonly Given[] {
  const known = new Set<string>()
  return [...given]
    .sort((a, b) => a.endedMs - b.endedMs)
    .filter(({ sequence, idempotencyKey }) => {
      if (idempotencyKey === undefined) return true
      const key = `${sequence} ${idempotencyKey}`
      const isFirst = !known.has(key)
      known.add(key)
      return isFirst
    })
}

function malformed(given: readonly Given[], from: bigint): readonly string[] {
  return given.flatMap((call) => {
    const { first, last } = call.range
    if (first >= from && last - first + 1n === BigInt(call.count)) return []
    return [`not a range of ${call.count} from ${from} on: ${say(call)}`]
  })
}

function changedRepeats(given: readonly Given[]): readonly string[] {
  const keyed = given.filter(({ idempotencyKey }) => idempotencyKey !== undefined)
  return [...groupBy(keyed, ({ idempotencyKey }) => idempotencyKey)].flatMap(([key, same]) => {
    const [one] = same
    const other = same.find(({ range }) => range.first !== one?.range.first || range.last !== one.range.last)
    return one === undefined || other === undefined
      ? []
      : [`two ranges for the key ${key}: ${say(one)}, and ${say(other)}`]
  })
}

function sharedValues(allocations: readonly Given[]): readonly string[] {
  const found: string[] = []
  let furthest: Given | undefined
  for (const call of [...allocations].sort(byFirst)) {
    if (furthest !== undefined && call.range.first <= furthest.range.last)
      found.push(`values given twice: ${say(furthest)}, and ${say(call)}`)
    if (furthest === undefined || call.range.last > furthest.range.last) furthest = call
  }
  return found
}

/** Of one request that ended before another began, the values are lower. A repetition may bring old values late. */
function fallingValues(allocations: readonly Given[]): readonly string[] {
  const plain = allocations.filter(({ idempotencyKey }) => idempotencyKey === undefined)
  const byEnd = [...allocations].sort((a, b) => a.endedMs - b.endedMs)
  const found: string[] = []
  let highest: Given | undefined
  let next = 0
  for (const call of [...plain].sort((a, b) => a.invokedMs - b.invokedMs)) {
    for (
      let ended = byEnd[next];
      ended !== undefined && ended.endedMs < call.invokedMs;
      ended = byEnd[next]
    ) {
      if (highest === undefined || ended.range.last > highest.range.last) highest = ended
      next += 1
    }
    if (highest !== undefined && call.range.first < highest.range.first)
      found.push(`values fall: ${say(highest)}, then ${say(call)}`)
  }
  return found
}

/** A value below the highest that nobody was given: of a request whose answer was lost, or lost with no reason. */
function unexplainedGaps(sequence: string, calls: readonly SequenceCall[], from: bigint): readonly string[] {
  const given = calls.filter(isGiven)
  const known = new Set(given.map(({ idempotencyKey }) => idempotencyKey))
  const lost = calls.filter(
    ({ outcome, idempotencyKey }) =>
      outcome === 'unknown' && (idempotencyKey === undefined || !known.has(idempotencyKey)),
  )
  const keys = groupBy(lost, ({ name, idempotencyKey }) => idempotencyKey ?? name)
  const spare = [...keys.values()].reduce((sum, [one]) => sum + BigInt(one?.count ?? 0), 0n)
  let [missing, next, gap] = [0n, from, '']
  for (const { range } of [...given].sort(byFirst)) {
    if (range.first > next) {
      missing += range.first - next
      gap ||= `${next} to ${range.first - 1n}`
    }
    if (range.last >= next) next = range.last + 1n
  }
  if (missing <= spare) return []
  return [
    `${missing} values of ${sequence} were given to nobody, ${gap} first; ${spare} at most were asked for without an answer`,
  ]
}

function byFirst(a: Given, b: Given): number {
  return a.range.first < b.range.first ? -1 : a.range.first > b.range.first ? 1 : a.endedMs - b.endedMs
}

function say(call: Given): string {
  const { first, last } = call.range
  return `${call.name} ${spanOf(call)} ${first === last ? first : `${first} to ${last}`} of ${call.sequence}`
}

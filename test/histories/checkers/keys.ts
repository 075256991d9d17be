import { groupBy, spanOf } from '../recorded.ts'
import { type KeyCall, keyModel, sayKeyCall } from './key-model.ts'
import { findOrder } from './linearizability.ts'
import { type Verdict, verdictOf } from './verdict.ts'

/** Reads that were answered: a run in which only writes got through proves little. */
const LEAST_READS = 30
/** For making an explanation small: what takes longer is left as it is. */
const STEPS_OF_A_TRY = 5000
const TRIES = 400
const SHOWN = 16

/** Each key by itself behaves as one register: reads, writes, deletes and compare-and-sets have one order in time. */
export function checkKeys(calls: readonly KeyCall[], least = LEAST_READS): Verdict {
  const possible = calls.filter((call) => call.outcome !== 'failed' && !isUnansweredRead(call))
  const violations: string[] = []
  const undecided: string[] = []
  for (const [key, ofKey] of groupBy(possible, ({ key }) => key)) {
    const order = findOrder(ofKey, keyModel)
    if (order === 'no') violations.push(explain(key, ofKey))
    if (order === 'gave up')
      undecided.push(`${key}: no end to the search for an order of ${ofKey.length} calls`)
  }
  return verdictOf(
    { checker: 'register', promise: 'each key is linearizable' },
    {
      violations: violations.sort((a, b) => a.length - b.length),
      undecided,
      work: possible.filter(({ kind, outcome }) => kind === 'read' && outcome === 'ok').length,
      least,
    },
  )
}

/** A read without an answer has no effect and tells nothing. */
function isUnansweredRead(call: KeyCall): boolean {
  return call.kind === 'read' && call.answer === undefined
}

function explain(key: string, calls: readonly KeyCall[]): string {
  const few = smallest(calls)
  const fromMs = Math.min(...few.map(({ invokedMs }) => invokedMs))
  const told = few.filter(({ answer }) => answer !== undefined)
  const untold = few.length - told.length
  const lines = told
    .sort((a, b) => a.endedMs - b.endedMs)
    .slice(-SHOWN)
    .map((call) => `  ${spanOf(call, fromMs)} ${call.name}: ${sayKeyCall(call)}`)
  const rest =
    untold === 0 ? '' : ` (with ${untold} writes that may have come at any time after they were asked for)`
  return [`${key}: no order explains these answers${rest}`, ...lines].join('\n')
}

/**
 * A part of `calls` that has no order either: the shortest beginning, then without every read, and every answer, that
 * is not needed for that. Each step only makes more orders possible, so that what is left is a proof.
 */
function smallest(calls: readonly KeyCall[]): readonly KeyCall[] {
  let tries = 0
  const isImpossible = (some: readonly KeyCall[]) => {
    tries += 1
    return tries <= TRIES && findOrder(some, keyModel, STEPS_OF_A_TRY) === 'no'
  }
  let few = shortestBeginning(calls, isImpossible)
  for (const call of [...few].sort((a, b) => a.endedMs - b.endedMs)) {
    if (call.answer === undefined) continue
    const others = few.filter((other) => other !== call)
    const without = call.kind === 'read' ? others : [...others, unanswered(call)]
    if (isImpossible(without)) few = without
  }
  const lastMs = Math.max(...few.filter(isTold).map(({ endedMs }) => endedMs))
  return few.filter((call) => isTold(call) || call.invokedMs < lastMs)
}

function shortestBeginning(
  calls: readonly KeyCall[],
  isImpossible: (some: readonly KeyCall[]) => boolean,
): readonly KeyCall[] {
  const ends = calls.filter(isTold).map(({ endedMs }) => endedMs)
  ends.sort((a, b) => a - b)
  const until = (endMs: number) => calls.flatMap((call) => knownAt(call, endMs))
  let [low, high] = [0, ends.length - 1]
  while (low < high) {
    const middle = (low + high) >> 1
    if (isImpossible(until(ends[middle] ?? 0))) high = middle
    else low = middle + 1
  }
  const beginning = until(ends[low] ?? 0)
  return isImpossible(beginning) ? beginning : calls
}

/** What was known of a call at a time: nothing, or that it had been asked for, or its answer. */
function knownAt(call: KeyCall, atMs: number): readonly KeyCall[] {
  if (call.invokedMs > atMs) return []
  if (call.endedMs <= atMs) return [call]
  return call.kind === 'read' ? [] : [unanswered(call)]
}

function isTold({ answer }: KeyCall): boolean {
  return answer !== undefined
}

function unanswered(call: KeyCall): KeyCall {
  return { ...call, outcome: 'unknown', endedMs: Number.POSITIVE_INFINITY, answer: undefined }
}

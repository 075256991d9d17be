import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../chaos/random.ts'
import { countAnswers, interleave } from '../simulated/interleaving.ts'
import { checkSequences, type SequenceCall } from './sequences.ts'

const answerOf = (calls: readonly SequenceCall[]) => checkSequences(calls, { least: 0 }).answer

/** Values `first` to `last` for a request of as many. */
function given(
  from: number,
  to: number,
  first: number,
  last = first,
  more: Partial<SequenceCall> = {},
): SequenceCall {
  const range = { first: BigInt(first), last: BigInt(last) }
  const about = { name: `c${from}`, sequence: 's', outcome: 'ok' as const, count: last - first + 1 }
  return { ...about, invokedMs: from, endedMs: to, range, ...more }
}
const lost = (from: number, count: number, idempotencyKey?: string): SequenceCall =>
  given(from, Infinity, 1, count, { outcome: 'unknown', range: undefined, idempotencyKey })
const key = { idempotencyKey: 'k' }

describe('the sequence checker', () => {
  it.each<[string, readonly SequenceCall[]]>([
    ['no call at all', []],
    ['values and ranges, one after the other', [given(0, 1, 1), given(2, 3, 2, 5), given(4, 5, 6)]],
    ['values out of order of requests that overlap', [given(0, 9, 2), given(1, 8, 1)]],
    [
      'a repeated request that is given the same',
      [given(0, 1, 1, 3, key), given(2, 3, 4), given(4, 5, 1, 3, key)],
    ],
    ['a gap of a request whose answer was lost', [lost(0, 2), given(1, 2, 3)]],
    ['a lost answer that was asked for again', [lost(0, 2, 'k'), given(1, 2, 3), given(3, 4, 1, 2, key)]],
    ['the same values of two sequences', [given(0, 1, 1), given(0, 1, 1, 1, { sequence: 't' })]],
  ])('takes %s', (_, calls) => {
    expect(answerOf(calls)).toBe('valid')
  })

  it.each<[string, string, readonly SequenceCall[]]>([
    ['a value twice', 'given twice', [given(0, 9, 1), given(1, 2, 1)]],
    ['ranges that overlap', 'given twice', [given(0, 9, 1, 4), given(1, 2, 4, 6)]],
    ['a range inside another', 'given twice', [given(0, 9, 1, 9), given(0, 9, 2), given(0, 9, 5)]],
    ['a range that is too short', 'not a range', [given(0, 1, 1, 2, { count: 3 })]],
    ['a range that runs backwards', 'not a range', [given(0, 1, 3, 1, { count: 2 })]],
    ['a value before the first', 'not a range', [given(0, 1, 0)]],
    [
      'a repeated request that is given another',
      'two ranges',
      [given(0, 1, 1, 1, key), given(2, 3, 2, 2, key)],
    ],
    ['values that fall', 'values fall', [given(0, 1, 2), given(2, 3, 1)]],
    ['a gap with no reason', 'given to nobody', [given(0, 1, 1), given(2, 3, 3)]],
    [
      'a gap of a request that failed',
      'given to nobody',
      [given(0, 1, 1, 1, { outcome: 'failed', range: undefined }), given(2, 3, 2)],
    ],
    [
      'a gap beside a lost answer that was had later',
      'given to nobody',
      [lost(0, 2, 'k'), given(1, 2, 5), given(3, 4, 1, 2, key)],
    ],
  ])('refuses %s', (_, name, calls) => {
    const { answer, explanation } = checkSequences(calls, { least: 0 })
    expect(answer).toBe('invalid')
    expect(explanation.join('\n')).toContain(name)
  })

  it('says unknown of a history with too few allocations', () => {
    expect(checkSequences([given(0, 1, 1)])).toMatchObject({ answer: 'unknown', work: 1 })
    const repeats = Array.from({ length: 30 }, (_, n) => given(n, n + 0.5, 1, 1, key))
    expect(checkSequences(repeats)).toMatchObject({ answer: 'unknown', work: 1 })
  })

  it('takes every history of a simulated sequence, and refuses it with one fault', () => {
    const answer = (fault?: SequenceFault) => (seed: number) =>
      checkSequences(playSequence(seed, fault)).answer
    expect(countAnswers(20, answer())).toEqual({ valid: 20, invalid: 0, unknown: 0 })
    expect(countAnswers(20, answer('given twice')).invalid).toBeGreaterThanOrEqual(19)
    expect(countAnswers(20, answer('repeated anew')).invalid).toBe(20)
    expect(countAnswers(20, answer('gap')).invalid).toBe(20)
  })
})

type SequenceFault = 'given twice' | 'repeated anew' | 'gap'

function playSequence(seed: number, fault?: SequenceFault): readonly SequenceCall[] {
  const random = seededRandom(seed, 'sequence')
  const remembered = new Map<string, { count: number; range: SequenceCall['range'] }>()
  let [current, left] = [0n, fault === undefined ? 0 : 1]
  return interleave(random, { clients: 5, calls: 300, lost: 0.01 }).map((moment, index): SequenceCall => {
    const keys = [...remembered.keys()]
    const isRepeat = keys.length > 0 && random.chance(0.2)
    const idempotencyKey = isRepeat ? random.pick(keys) : random.chance(0.3) ? `k${index}` : undefined
    const known = idempotencyKey === undefined ? undefined : remembered.get(idempotencyKey)
    const count = known?.count ?? random.whole(1, 4)
    const asked = { ...moment, sequence: 's', count, idempotencyKey }
    if (moment.effectMs === undefined) return asked
    const isTime = left > 0 && index > 100 && moment.outcome === 'ok'
    const repeatsAnew = isTime && fault === 'repeated anew' && known !== undefined
    let range = repeatsAnew ? undefined : known?.range
    if (range === undefined) {
      const givesTwice = isTime && fault === 'given twice'
      const skips = isTime && fault === 'gap'
      if (givesTwice) current -= 1n
      // More than all requests without an answer could have taken.
      if (skips) current += 100n
      if (givesTwice || skips || repeatsAnew) left -= 1
      range = { first: current + 1n, last: current + BigInt(count) }
      current = range.last
    }
    if (idempotencyKey !== undefined && known === undefined) remembered.set(idempotencyKey, { count, range })
    return moment.outcome === 'ok' ? { ...asked, range } : asked
  })
}

import { describe, expect, it } from 'vitest'
import { countAnswers } from '../simulated/interleaving.ts'
import { type KeyFault, playKeyStore } from '../simulated/key-store.ts'
import type { KeyCall, KeyRead, KeyWrite } from './key-model.ts'
import { checkKeys } from './keys.ts'

const answerOf = (calls: readonly KeyCall[]) => checkKeys(calls, 0).answer

/** A call of key k from `from` to `to`; `to` left out: never answered. */
function call(from: number, to: number | undefined, what: KeyRead | KeyWrite): KeyCall {
  const outcome = to === undefined ? 'unknown' : 'ok'
  return { name: `p#${from}`, key: 'k', invokedMs: from, endedMs: to ?? Infinity, outcome, ...what }
}
const read = (from: number, to: number, value: string | null, revision?: bigint) =>
  call(from, to, { kind: 'read', answer: { value, ...(revision === undefined ? {} : { revision }) } })
const write = (from: number, to: number | undefined, value: string | null, more: Partial<KeyWrite> = {}) =>
  call(from, to, { kind: 'write', value, answer: to === undefined ? undefined : { applied: true }, ...more })
const refused = { answer: { applied: false } }

describe('the register checker takes', () => {
  it.each<[string, readonly KeyCall[]]>([
    ['no call at all', []],
    ['a read of a write that is under way', [write(0, 10, 'a'), read(2, 4, 'a')]],
    ['reads before and after a write takes effect', [write(0, 10, 'a'), read(1, 2, null), read(3, 4, 'a')]],
    ['a write whose answer was lost, and that nobody sees', [write(0, undefined, 'a'), read(5, 6, null)]],
    ['one that takes effect long after', [write(0, undefined, 'a'), read(5, 6, null), read(90, 91, 'a')]],
    [
      'revisions of writes and of a delete',
      [
        write(0, 1, 'a', { answer: { applied: true, revision: 0n } }),
        write(2, 3, null, { answer: { applied: true, revision: 1n } }),
        write(4, 5, 'b', { answer: { applied: true, revision: 2n } }),
      ],
    ],
    [
      'of two compare-and-sets of the same value one that is refused',
      [
        write(0, 1, 'a'),
        write(2, 6, 'b', { conditions: { value: 'a' } }),
        write(3, 7, 'c', { conditions: { value: 'a' }, ...refused }),
      ],
    ],
    [
      'a gap of revisions where an answer was lost',
      [write(0, undefined, 'a'), read(5, 6, 'b', 1n), write(1, 2, 'b')],
    ],
    [
      'a create that is refused where there is a value',
      [write(0, 1, 'a'), write(2, 3, 'b', { conditions: { absent: true }, ...refused })],
    ],
    ['a failed write that is not seen', [{ ...write(0, 1, 'a'), outcome: 'failed' }, read(2, 3, null)]],
  ])('%s', (_, calls) => {
    expect(answerOf(calls)).toBe('valid')
  })
})

describe('the register checker refuses', () => {
  it.each<[string, readonly KeyCall[]]>([
    ['a read of what was overwritten before', [write(0, 1, 'a'), write(2, 3, 'b'), read(4, 5, 'a')]],
    ['a read that goes back', [write(0, 20, 'a'), read(1, 2, 'a'), read(3, 4, null)]],
    ['a value that nobody wrote', [write(0, 1, 'a'), read(2, 3, 'z')]],
    ['a failed write that is seen', [{ ...write(0, 1, 'a'), outcome: 'failed' }, read(2, 3, 'a')]],
    [
      'a lost update',
      [
        write(0, 1, 'a'),
        write(2, 6, 'b', { conditions: { value: 'a' } }),
        write(3, 7, 'c', { conditions: { value: 'a' } }),
      ],
    ],
    [
      'a lost update by revision',
      [
        write(0, 1, 'a'),
        write(2, 6, 'b', { conditions: { revision: 0n } }),
        write(3, 7, 'c', { conditions: { revision: 0n } }),
      ],
    ],
    [
      'a compare-and-set that is refused for no reason',
      [write(0, 1, 'a'), write(2, 3, 'b', { conditions: { value: 'a' }, ...refused })],
    ],
    [
      'two creates',
      [
        write(0, 5, 'a', { conditions: { absent: true } }),
        write(1, 6, 'b', { conditions: { absent: true } }),
      ],
    ],
    ['a delete of what is not there', [write(0, 1, null)]],
    ['a delete that leaves its value', [write(0, 1, 'a'), write(2, 3, null), read(4, 5, 'a')]],
    [
      'a revision that starts again after a delete',
      [write(0, 1, 'a'), write(2, 3, null), write(4, 5, 'b', { answer: { applied: true, revision: 0n } })],
    ],
    ['a gap of revisions with no reason', [write(0, 1, 'a'), read(2, 3, 'a', 1n)]],
    [
      'one revision of two values',
      [write(0, 9, 'a'), write(0, 9, 'b'), read(10, 11, 'a', 1n), read(10, 11, 'b', 1n)],
    ],
    ['a write seen before it was asked for', [read(0, 1, 'a'), write(2, undefined, 'a')]],
  ])('%s', (_, calls) => {
    expect(answerOf(calls)).toBe('invalid')
  })
})

describe('the register checker', () => {
  it('explains by no more calls than it takes', () => {
    const noise = Array.from({ length: 50 }, (_, n) => read(100 + n, 100 + n + 0.5, 'b'))
    const calls = [write(0, 1, 'a'), write(2, 3, 'b'), ...noise, read(200, 201, 'a'), read(202, 203, 'b')]
    const { explanation } = checkKeys(calls)
    expect(explanation).toHaveLength(1)
    // The first line, and at most three answers: the write, that which overwrote it, and the read.
    expect(explanation[0]?.split('\n').length).toBeLessThanOrEqual(4)
    expect(explanation[0]).toContain('read "a"')
  })

  it('says unknown of a history with too few reads', () => {
    expect(checkKeys([write(0, 1, 'a'), read(2, 3, 'a')])).toMatchObject({ answer: 'unknown', work: 1 })
    expect(checkKeys([]).answer).toBe('unknown')
  })

  it('takes every history of a simulated store, one of 2,000 calls too', () => {
    const how = { clients: 8, calls: 2000, keys: 10 }
    expect(checkKeys(playKeyStore({ seed: 1, ...how })).answer).toBe('valid')
    const small = { clients: 6, calls: 300, keys: 3 }
    expect(countAnswers(20, (seed) => checkKeys(playKeyStore({ seed, ...small })).answer)).toEqual({
      valid: 20,
      invalid: 0,
      unknown: 0,
    })
  })

  it.each<[KeyFault, number]>([
    ['stale read', 11],
    ['lost write', 11],
    ['blind compare-and-set', 11],
    ['revision falls', 11],
  ])('refuses the history of a store with one %s', (fault, least) => {
    const how = { clients: 6, calls: 300, keys: 3, fault }
    const answers = countAnswers(12, (seed) => checkKeys(playKeyStore({ seed, ...how })).answer)
    expect(answers.invalid).toBeGreaterThanOrEqual(least)
  })
})

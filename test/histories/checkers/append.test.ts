import { describe, expect, it } from 'vitest'
import { countAnswers } from '../simulated/interleaving.ts'
import { type ListFault, playListStore } from '../simulated/list-store.ts'
import { checkAppends } from './append.ts'
import type { AppendStep, AppendTransaction } from './append-history.ts'

const answerOf = (history: readonly AppendTransaction[]) => checkAppends(history, 0).answer

/** A transaction from `from` to `to`: `a+1` appends 1 to a, `a=1,2` reads that. */
function tx(
  from: number,
  to: number,
  steps: string,
  outcome: AppendTransaction['outcome'] = 'ok',
): AppendTransaction {
  const parsed = steps.split(' ').map((step): AppendStep => {
    const [key = '', rest = ''] = step.split(/[+=]/)
    if (step.includes('+')) return { kind: 'append', key, element: rest }
    return { kind: 'read', key, list: rest === '' ? [] : rest.split(',') }
  })
  const endedMs = outcome === 'unknown' ? Infinity : to
  return { name: `t${from}`, invokedMs: from, endedMs, outcome, steps: parsed }
}

describe('the append checker takes', () => {
  it.each<[string, readonly AppendTransaction[]]>([
    ['no transaction at all', []],
    ['one after the other', [tx(0, 1, 'a+1 b+2'), tx(2, 3, 'a=1 a+3'), tx(4, 5, 'a=1,3 b=2')]],
    ['a read before a write that is under way', [tx(0, 10, 'a+1'), tx(2, 3, 'a='), tx(4, 5, 'a=1')]],
    ['what it appended itself', [tx(0, 1, 'a+1'), tx(2, 3, 'a=1 a+2 a=1,2 a+3 a=1,2,3')]],
    ['an unanswered one that was seen', [tx(0, 1, 'a+1', 'unknown'), tx(2, 3, 'a=1')]],
    ['an unanswered one that was not', [tx(0, 1, 'a+1', 'unknown'), tx(2, 3, 'a=')]],
    ['one seen late', [tx(0, 1, 'a+1', 'unknown'), tx(2, 3, 'a= a+2'), tx(4, 5, 'a=2,1')]],
    ['a failed one that is not seen', [tx(0, 1, 'a+1', 'failed'), tx(2, 3, 'a=')]],
  ])('%s', (_, history) => {
    expect(answerOf(history)).toBe('valid')
  })
})

describe('the append checker refuses', () => {
  it.each<[string, string, readonly AppendTransaction[]]>([
    ['a rolled back append that is read', 'G1a', [tx(0, 1, 'a+1', 'failed'), tx(2, 3, 'a=1')]],
    ['half a transaction', 'G1b', [tx(0, 9, 'a+1 a+2'), tx(1, 2, 'a=1'), tx(10, 11, 'a=1,2')]],
    ['an element from nowhere', 'never appended', [tx(0, 1, 'a=1')]],
    ['an element of another list', 'never appended', [tx(0, 1, 'b+1'), tx(2, 3, 'a=1')]],
    ['an element twice', 'appended twice', [tx(0, 1, 'a+1'), tx(2, 3, 'a=1,1')]],
    [
      'lists that differ',
      'incompatible',
      [tx(0, 9, 'a+1'), tx(0, 9, 'a+2'), tx(1, 2, 'a=1,2'), tx(3, 4, 'a=2,1')],
    ],
    ['a read that forgets its own append', 'own append', [tx(0, 1, 'a+1 a=')]],
    ['writes in a circle', 'G0', [tx(0, 9, 'a+1 b+2'), tx(0, 9, 'a+3 b+4'), tx(10, 11, 'a=1,3 b=4,2')]],
    ['reads in a circle', 'G1c', [tx(0, 9, 'a+1 b=2'), tx(0, 9, 'b+2 a=1')]],
    [
      'a read of half of what came before',
      'G-single',
      [tx(0, 9, 'a+1 b+2'), tx(0, 9, 'a=1 b='), tx(10, 11, 'b=2')],
    ],
    ['write skew', 'G2', [tx(0, 9, 'a= b+1'), tx(0, 9, 'b= a+2'), tx(10, 11, 'a=2 b=1')]],
    ['a lost update', 'G2', [tx(0, 9, 'a= a+1'), tx(0, 9, 'a= a+2'), tx(10, 11, 'a=2')]],
    ['a stale read', 'against time', [tx(0, 1, 'a+1'), tx(2, 3, 'a='), tx(4, 5, 'a=1')]],
    ['an append that nobody ever sees', 'against time', [tx(0, 1, 'a+1'), tx(2, 3, 'a=')]],
  ])('%s', (_, name, history) => {
    const { answer, explanation } = checkAppends(history, 0)
    expect(answer).toBe('invalid')
    expect(explanation[0]).toContain(name)
  })
})

describe('the append checker', () => {
  it('explains by the shortest circle', () => {
    const noise = Array.from({ length: 30 }, (_, n) => tx(20 + n, 20.5 + n, `c+${n + 10}`))
    const history = [tx(0, 9, 'a= b+1'), tx(0, 9, 'b= a+2'), ...noise, tx(100, 101, 'a=2 b=1')]
    // One line for what it is, two for the two transactions.
    expect(checkAppends(history, 0).explanation[0]?.split('\n')).toHaveLength(3)
  })

  it('says unknown of a history with too few readers', () => {
    expect(checkAppends([tx(0, 1, 'a+1'), tx(2, 3, 'a=1')])).toMatchObject({ answer: 'unknown', work: 1 })
  })

  it('takes every history of a simulated store, one of 2,000 transactions too', () => {
    const large = playListStore({ seed: 1, clients: 8, calls: 2000, keys: 20 })
    expect(checkAppends(large).answer).toBe('valid')
    const small = { clients: 6, calls: 300, keys: 3 }
    const answers = countAnswers(20, (seed) => checkAppends(playListStore({ seed, ...small })).answer)
    expect(answers).toEqual({ valid: 20, invalid: 0, unknown: 0 })
  })

  it.each<ListFault>(['stale read', 'lost append', 'rolled back append stays', 'torn append', 'write skew'])(
    'refuses the history of a store with one %s',
    (fault) => {
      const how = { clients: 6, calls: 300, keys: 3, failed: 0.05, fault }
      const answers = countAnswers(12, (seed) => checkAppends(playListStore({ seed, ...how })).answer)
      expect(answers.invalid).toBeGreaterThanOrEqual(11)
    },
  )
})

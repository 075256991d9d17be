import { describe, expect, it } from 'vitest'
import { seededRandom } from '../../chaos/random.ts'
import { countAnswers, interleave } from '../simulated/interleaving.ts'
import { type BankCall, type BankTransfer, checkBank } from './bank.ts'

const opening = { a: 10, b: 10 }
const answerOf = (calls: readonly BankCall[]) => checkBank(calls, { opening, least: 0 }).answer

const read = (from: number, to: number, a: number, b: number): BankCall => ({
  name: `r${from}`,
  invokedMs: from,
  endedMs: to,
  outcome: 'ok',
  kind: 'read',
  balances: { a, b },
})
/** Moves 3 from a to b, unless `more` says otherwise. */
const transfer = (from: number, to: number, more: Partial<BankTransfer & BankCall> = {}): BankCall => ({
  name: `t${from}`,
  invokedMs: from,
  endedMs: to,
  outcome: 'ok',
  kind: 'transfer',
  from: 'a',
  to: 'b',
  amount: 3,
  moved: true,
  ...(more as object),
})
const unanswered = { outcome: 'unknown', moved: undefined } as const

describe('the bank checker', () => {
  it.each<[string, readonly BankCall[]]>([
    ['reads before, during and after a transfer', [transfer(0, 9), read(1, 2, 10, 10), read(3, 4, 7, 13)]],
    ['a transfer that was refused', [transfer(0, 1, { amount: 50, moved: false }), read(2, 3, 10, 10)]],
    [
      'one without an answer, seen or not',
      [transfer(0, Infinity, unanswered), read(2, 3, 10, 10), read(4, 5, 7, 13)],
    ],
  ])('takes %s', (_, calls) => {
    expect(answerOf(calls)).toBe('valid')
  })

  it.each<[string, string, readonly BankCall[]]>([
    ['money from nowhere', 'total', [read(0, 1, 10, 13)]],
    ['half a transfer', 'total', [transfer(0, 9), read(1, 2, 7, 10)]],
    ['a balance below zero', 'below zero', [transfer(0, 1, { amount: 12 }), read(2, 3, -2, 22)]],
    ['a transfer that is lost', 'can be from', [transfer(0, 1), read(2, 3, 10, 10)]],
    ['a transfer that nobody made', 'can be from', [read(2, 3, 7, 13)]],
    [
      'a transfer that was refused and made',
      'can be from',
      [transfer(0, 1, { moved: false }), read(2, 3, 7, 13)],
    ],
    [
      'a failed transfer that was made',
      'can be from',
      [transfer(0, 1, { outcome: 'failed' }), read(2, 3, 7, 13)],
    ],
  ])('refuses %s', (_, name, calls) => {
    const { answer, explanation } = checkBank(calls, { opening, least: 0 })
    expect(answer).toBe('invalid')
    expect(explanation[0]).toContain(name)
  })

  it('says unknown of a history in which nothing was seen to move', () => {
    expect(checkBank([read(0, 1, 10, 10)], { opening })).toMatchObject({ answer: 'unknown', work: 0 })
  })

  it('takes every history of a simulated bank, and refuses it with one fault', () => {
    const answer = (fault?: BankFault) => (seed: number) =>
      checkBank(playBank(seed, fault), { opening: wealth }).answer
    expect(countAnswers(20, answer())).toEqual({ valid: 20, invalid: 0, unknown: 0 })
    expect(countAnswers(20, answer('half a transfer')).invalid).toBe(20)
    expect(countAnswers(20, answer('lost transfer')).invalid).toBeGreaterThanOrEqual(16)
  })
})

const wealth = { a: 100, b: 100, c: 100 }
type BankFault = 'half a transfer' | 'lost transfer'

/** Few answers get lost: where what may have happened is much, a lost transfer is not seen. */
function playBank(seed: number, fault?: BankFault): readonly BankCall[] {
  const random = seededRandom(seed, 'bank')
  const accounts = ['a', 'b', 'c'] as const
  const balances = { ...wealth }
  const moments = interleave(random, { clients: 4, calls: 200, lost: 0.005 })
  let left = fault === undefined ? 0 : 1
  return moments.map((moment, index): BankCall => {
    const answers = moment.outcome === 'ok'
    if (random.chance(0.5))
      return { ...moment, kind: 'read', balances: answers ? { ...balances } : undefined }
    const from = random.pick(accounts)
    const to = random.pick(accounts.filter((other) => other !== from))
    const amount = random.whole(20, 60)
    const moved = moment.effectMs !== undefined && balances[from] >= amount
    const isFaulty = left > 0 && index > 60 && moved && answers
    if (isFaulty) left -= 1
    if (moved && !(isFaulty && fault === 'lost transfer')) {
      balances[from] -= amount
      if (!isFaulty) balances[to] += amount
    }
    return { ...moment, kind: 'transfer', from, to, amount, moved: answers ? moved : undefined }
  })
}

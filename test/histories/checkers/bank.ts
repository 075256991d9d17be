import { type Recorded, spanOf } from '../recorded.ts'
import { type Verdict, verdictOf } from './verdict.ts'

export type BankCall = Recorded & (BankRead | BankTransfer)

/** All balances, in one transaction. */
export interface BankRead {
  readonly kind: 'read'
  readonly balances?: Readonly<Record<string, number>> | undefined
}

/** Refused where `from` has less than `amount`. */
export interface BankTransfer {
  readonly kind: 'transfer'
  readonly from: string
  readonly to: string
  readonly amount: number
  readonly moved?: boolean | undefined
}

export interface BankRules {
  /** What each account has at the start. */
  readonly opening: Readonly<Record<string, number>>
  readonly least?: number
}

/** Reads that saw another state than the opening one. */
const LEAST_READS = 20

/**
 * Money is neither made nor lost: every read of all accounts has the total of the opening balances, and none below zero;
 * and a read has what the transfers that it must have seen, and may have seen, can come to.
 */
export function checkBank(calls: readonly BankCall[], { opening, least = LEAST_READS }: BankRules): Verdict {
  const total = sumOf(opening)
  const transfers = calls.filter((call) => call.kind === 'transfer')
  const ledgers = new Map(
    Object.entries(opening).map(([account, balance]) => [account, new Ledger(account, balance, transfers)]),
  )
  const answered = calls.flatMap((call) =>
    call.kind === 'read' && call.balances !== undefined ? [{ call, balances: call.balances }] : [],
  )
  const violations = answered.flatMap(({ call, balances }) => {
    const where = `${call.name} ${spanOf(call)} read ${JSON.stringify(balances)}`
    const sum = sumOf(balances)
    if (sum !== total) return [`the total is ${sum} in place of ${total}: ${where}`]
    const below = Object.entries(balances).find(([, balance]) => balance < 0)
    if (below !== undefined) return [`${below[0]} is below zero: ${where}`]
    return Object.entries(balances).flatMap(([account, balance]) => {
      const range = ledgers.get(account)?.rangeAt(call) ?? { low: 0, high: 0 }
      if (balance >= range.low && balance <= range.high) return []
      return [
        `${account} can be from ${range.low} to ${range.high} by the transfers before and during: ${where}`,
      ]
    })
  })
  const moving = answered.filter(({ balances }) => JSON.stringify(balances) !== JSON.stringify(opening))
  return verdictOf(
    { checker: 'bank', promise: 'transfers by scripts neither make nor lose money' },
    { violations, work: moving.length, least },
  )
}

function sumOf(balances: Readonly<Record<string, number>>): number {
  return Object.values(balances).reduce((sum, balance) => sum + balance, 0)
}

/** What transfers did to one account, or may have done. */
class Ledger {
  readonly #opening: number
  readonly #ended: Sums
  readonly #begun: Sums

  constructor(account: string, opening: number, transfers: readonly (Recorded & BankTransfer)[]) {
    const changes = transfers.flatMap(({ from, to, amount, moved, outcome, ...when }) => {
      const change = (to === account ? amount : 0) - (from === account ? amount : 0)
      return outcome === 'failed' || moved === false || change === 0 ? [] : [{ ...when, outcome, change }]
    })
    this.#opening = opening
    this.#begun = new Sums(changes.map(({ invokedMs, change }) => [invokedMs, change]))
    const sure = changes.filter(({ outcome }) => outcome === 'ok')
    this.#ended = new Sums(sure.map(({ endedMs, change }) => [endedMs, change]))
  }

  /** The least and the most it can have for `read`: transfers that had ended before count, those that had begun may. */
  rangeAt(read: Recorded): { readonly low: number; readonly high: number } {
    const sure = this.#ended.before(read.invokedMs)
    const possible = this.#begun.before(read.endedMs)
    return {
      low: this.#opening + sure.gained + possible.spent,
      high: this.#opening + sure.spent + possible.gained,
    }
  }
}

/** Sums of what changed before a time. */
class Sums {
  readonly #times: readonly number[]
  readonly #sums: readonly { readonly gained: number; readonly spent: number }[]

  constructor(changes: readonly (readonly [atMs: number, change: number])[]) {
    const sorted = [...changes].sort(([a], [b]) => a - b)
    let [gained, spent] = [0, 0]
    this.#times = sorted.map(([atMs]) => atMs)
    this.#sums = sorted.map(([, change]) => {
      if (change > 0) gained += change
      else spent += change
      return { gained, spent }
    })
  }

  before(atMs: number): { readonly gained: number; readonly spent: number } {
    let [low, high] = [0, this.#times.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if ((this.#times[middle] ?? 0) < atMs) low = middle + 1
      else high = middle
    }
    return this.#sums[low - 1] ?? { gained: 0, spent: 0 }
  }
}

import type { Recorded } from '../recorded.ts'

/** A transaction that reads lists and appends to them. Each appended element is unique in the run. */
export interface AppendTransaction extends Recorded {
  /** In the order in which the transaction does them. A read's `list` is known of one that was answered. */
  readonly steps: readonly AppendStep[]
}

export type AppendStep =
  | { readonly kind: 'append'; readonly key: string; readonly element: string }
  | { readonly kind: 'read'; readonly key: string; readonly list?: readonly string[] }

/** What a transaction saw of a key before it appended to it itself. */
export interface ListRead {
  readonly transaction: AppendTransaction
  readonly key: string
  readonly list: readonly string[]
}

export interface Appended {
  readonly by: AppendTransaction
  readonly key: string
  /** The last of its transaction to that key. */
  readonly isLast: boolean
}

export interface AppendHistory {
  readonly appended: ReadonlyMap<string, Appended>
  /** By key. */
  readonly reads: ReadonlyMap<string, readonly ListRead[]>
  /** By key, the longest list that was read: every other has to be a beginning of it. */
  readonly longest: ReadonlyMap<string, readonly string[]>
  /** Reads that do not show what their own transaction had appended. */
  readonly forgetful: readonly string[]
}

export function appendHistoryOf(transactions: readonly AppendTransaction[]): AppendHistory {
  const appended = new Map<string, Appended>()
  const reads = new Map<string, ListRead[]>()
  const longest = new Map<string, readonly string[]>()
  const forgetful: string[] = []
  for (const transaction of transactions) {
    for (const [element, about] of appendsOf(transaction)) appended.set(element, about)
    if (transaction.outcome !== 'ok') continue
    const own = new Map<string, string[]>()
    for (const step of transaction.steps) {
      const before = own.get(step.key) ?? []
      if (step.kind === 'append') {
        own.set(step.key, [...before, step.element])
        continue
      }
      const list = step.list ?? []
      const seen = list.slice(0, Math.max(0, list.length - before.length))
      if (before.some((element, index) => list[seen.length + index] !== element)) {
        forgetful.push(
          `${transaction.name} appended ${before.join(', ')} to ${step.key} and then read ${tail(list)}`,
        )
        continue
      }
      const ofKey = reads.get(step.key) ?? []
      ofKey.push({ transaction, key: step.key, list: seen })
      reads.set(step.key, ofKey)
      if (list.length > (longest.get(step.key)?.length ?? -1)) longest.set(step.key, list)
    }
  }
  return { appended, reads, longest, forgetful }
}

function appendsOf(by: AppendTransaction): readonly (readonly [string, Appended])[] {
  const appends = by.steps.filter((step) => step.kind === 'append')
  return appends.map(({ key, element }, index) => {
    const isLast = !appends.slice(index + 1).some((later) => later.key === key)
    return [element, { by, key, isLast }] as const
  })
}

/** The end of a list, for people. */
export function tail(list: readonly string[]): string {
  const shown = list.slice(-6).join(', ')
  return list.length > 6 ? `[… ${shown}]` : `[${shown}]`
}

import { spanOf } from '../recorded.ts'
import { type AppendHistory, type AppendTransaction, appendHistoryOf, tail } from './append-history.ts'
import { appendOrderOf } from './append-order.ts'
import { type Edge, findCycles } from './cycles.ts'
import { type Verdict, verdictOf } from './verdict.ts'

/** Transactions that were answered and read a list with something in it. */
const LEAST_TRANSACTIONS = 30

/**
 * Transactions that read and append to lists have one order, which keeps to time: one that began after another was
 * answered comes after it.
 *
 * Lists of unique elements tell the order of their writes and what each reader saw; a cycle of who must come before whom
 * is an anomaly. The method is that of Elle (Kingsbury and Alvaro, Elle: Inferring Isolation Anomalies from Experimental
 * Observations, 2020), for lists only.
 */
export function checkAppends(
  transactions: readonly AppendTransaction[],
  least = LEAST_TRANSACTIONS,
): Verdict {
  const history = appendHistoryOf(transactions)
  const plain = [
    ...history.forgetful.map((text) => `own append not seen: ${text}`),
    ...strayReads(history),
    ...tornReads(history),
    ...bentLists(history),
  ]
  // Where the lists contradict each other they tell no order.
  const violations = plain.length > 0 ? plain : cyclesOf(transactions, history)
  const readers = [...history.reads.values()]
    .flat()
    .flatMap(({ transaction, list }) => (list.length > 0 ? transaction : []))
  return verdictOf(
    { checker: 'append', promise: 'scripts that append to lists are strictly serializable' },
    { violations, work: new Set(readers).size, least },
  )
}

/** Elements that were rolled back (Adya's G1a), appended to another key, never appended, or twice in a list. */
function strayReads({ appended, longest, reads }: AppendHistory): readonly string[] {
  const found = new Map<string, string>()
  for (const [key, ofKey] of reads) {
    for (const { transaction, list } of ofKey) {
      for (const [index, element] of list.entries()) {
        if (found.has(element)) continue
        const source = appended.get(element)
        const read = `${transaction.name} read ${element} in ${key}`
        if (source === undefined || source.key !== key)
          found.set(element, `never appended: ${read}, which nobody appended to it`)
        else if (source.by.outcome === 'failed')
          found.set(
            element,
            `G1a, a rolled back append was read: ${read}; ${source.by.name} was told it failed`,
          )
        else if (list.indexOf(element) !== index) found.set(element, `appended twice: ${read} twice`)
      }
    }
  }
  for (const [key, list] of longest) {
    const twice = list.find((element, index) => list.indexOf(element) !== index)
    if (twice !== undefined && !found.has(twice)) found.set(twice, `appended twice: ${twice} in ${key}`)
  }
  return [...found.values()]
}

/** A read that ends between two appends of another transaction (G1b). */
function tornReads({ appended, reads }: AppendHistory): readonly string[] {
  return [...reads.values()].flat().flatMap(({ transaction, key, list }) => {
    const source = appended.get(list.at(-1) ?? '')
    if (source === undefined || source.isLast || source.by === transaction) return []
    return [
      `G1b, half a transaction was read: ${transaction.name} read ${tail(list)} in ${key}; ${source.by.name} appended more`,
    ]
  })
}

/** Every list that was read of a key is a beginning of the longest one. */
function bentLists({ reads, longest }: AppendHistory): readonly string[] {
  return [...reads].flatMap(([key, ofKey]) => {
    const order = longest.get(key) ?? []
    const bent = ofKey.find(({ list }) => list.some((element, index) => order[index] !== element))
    if (bent === undefined) return []
    const place = bent.list.findIndex((element, index) => order[index] !== element)
    const [mine, theirs] = [bent.list.slice(0, place + 1), order.slice(0, place + 1)]
    return [
      `incompatible order: ${bent.transaction.name} read ${key} as ${tail(mine)}, another as ${tail(theirs)}`,
    ]
  })
}

function cyclesOf(transactions: readonly AppendTransaction[], history: AppendHistory): readonly string[] {
  const { transactions: happened, edges } = appendOrderOf(transactions, history)
  const levels = [['ww'], ['ww', 'wr'], ['ww', 'wr', 'rw'], ['ww', 'wr', 'rw', 'time']] as const
  // The worst anomaly first: a cycle of writes alone says more than one that needs the clock.
  for (const level of levels) {
    const kinds: readonly Edge['kind'][] = level
    const cycles = findCycles(
      happened.length,
      edges.filter(({ kind }) => kinds.includes(kind)),
    )
    if (cycles.length > 0) return cycles.map((cycle) => sayCycle(cycle, happened))
  }
  return []
}

function sayCycle(cycle: readonly Edge[], happened: readonly AppendTransaction[]): string {
  const fromMs = Math.min(...cycle.map(({ from }) => happened[from]?.invokedMs ?? 0))
  const lines = cycle.map(({ from, to, kind, why }) => {
    const [before, after] = [happened[from], happened[to]]
    if (before === undefined || after === undefined) return ''
    return `  ${before.name} ${spanOf(before, fromMs)} before ${after.name}: ${why} (${kind})`
  })
  return [`${nameOf(cycle)}: ${cycle.length} transactions, each before the next`, ...lines].join('\n')
}

/** The names of Adya and of Elle. */
function nameOf(cycle: readonly Edge[]): string {
  const count = (wanted: Edge['kind']) => cycle.filter(({ kind }) => kind === wanted).length
  const inTime = count('time') > 0 ? ', against time' : ''
  if (count('rw') > 1) return `G2, write skew${inTime}`
  if (count('rw') === 1) return `G-single, a read without a write that came before${inTime}`
  return count('wr') > 0 ? `G1c, circular reads${inTime}` : `G0, circular writes${inTime}`
}

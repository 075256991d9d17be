import type { Recorded } from '../recorded.ts'
import type { AppendHistory, AppendTransaction } from './append-history.ts'
import type { Edge } from './cycles.ts'

/** Which transactions took effect, as far as anybody can tell, and what makes one come before another. */
export interface AppendOrder {
  readonly transactions: readonly AppendTransaction[]
  readonly edges: readonly Edge[]
}

export function appendOrderOf(
  transactions: readonly AppendTransaction[],
  history: AppendHistory,
): AppendOrder {
  const seen = new Set(
    [...history.longest.values()].flat().map((element) => history.appended.get(element)?.by),
  )
  // One whose answer was lost, and that nobody has seen, may not have happened.
  const happened = transactions.filter(
    (one) => one.outcome === 'ok' || (one.outcome === 'unknown' && seen.has(one)),
  )
  const places = new Map(happened.map((one, place) => [one, place]))
  const edges: Edge[] = []
  const add = (
    from: AppendTransaction | undefined,
    to: AppendTransaction | undefined,
    about: Pick<Edge, 'kind' | 'why'>,
  ) => {
    const [before, after] = [from && places.get(from), to && places.get(to)]
    if (before !== undefined && after !== undefined && before !== after)
      edges.push({ from: before, to: after, ...about })
  }
  const by = (element: string | undefined) =>
    element === undefined ? undefined : history.appended.get(element)?.by

  for (const [key, list] of history.longest) {
    for (const [index, element] of list.entries()) {
      const next = list[index + 1]
      if (next !== undefined)
        add(by(element), by(next), { kind: 'ww', why: `${element} is before ${next} in ${key}` })
    }
  }
  const unseen = unseenAppends(happened, history)
  for (const [key, reads] of history.reads) {
    const order = history.longest.get(key) ?? []
    for (const { transaction, list } of reads) {
      const last = list.at(-1)
      add(by(last), transaction, { kind: 'wr', why: `${last} in ${key} was read` })
      const next = order[list.length]
      add(transaction, by(next), { kind: 'rw', why: `${key} was read without ${next}` })
      // Lists only grow: what no read shows was appended after all of them.
      for (const { element, transaction: later } of unseen.get(key) ?? [])
        add(transaction, later, {
          kind: 'rw',
          why: `${key} was read without ${element}, which no read shows`,
        })
    }
  }
  return { transactions: happened, edges: [...edges, ...edgesOfTime(happened)] }
}

function unseenAppends(happened: readonly AppendTransaction[], { longest }: AppendHistory) {
  const shown = new Set([...longest.values()].flat())
  const unseen = new Map<string, { element: string; transaction: AppendTransaction }[]>()
  for (const transaction of happened) {
    for (const step of transaction.steps) {
      if (step.kind !== 'append' || shown.has(step.element)) continue
      unseen.set(step.key, [...(unseen.get(step.key) ?? []), { element: step.element, transaction }])
    }
  }
  return unseen
}

/**
 * One that ended before another began comes before it. Only the last ones that had ended are linked: those that had ended
 * before one of these began come before it already.
 */
export function edgesOfTime(all: readonly Recorded[]): readonly Edge[] {
  const moments = all.flatMap((one, place) => [
    { atMs: one.invokedMs, place, isEnd: false },
    ...(Number.isFinite(one.endedMs) ? [{ atMs: one.endedMs, place, isEnd: true }] : []),
  ])
  // At the same moment they overlap.
  moments.sort((a, b) => a.atMs - b.atMs || Number(a.isEnd) - Number(b.isEnd))
  const edges: Edge[] = []
  let ended: number[] = []
  for (const { place, isEnd } of moments) {
    const one = all[place]
    if (isEnd)
      ended = [...ended.filter((other) => (all[other]?.endedMs ?? 0) >= (one?.invokedMs ?? 0)), place]
    else
      for (const from of ended)
        edges.push({ from, to: place, kind: 'time', why: 'it had ended before the other began' })
  }
  return edges
}

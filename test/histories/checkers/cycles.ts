/** What makes one transaction come before another. */
export interface Edge {
  readonly from: number
  readonly to: number
  /** Writes before writes, is read by, was overwritten after it was read, ended before the other began. */
  readonly kind: 'ww' | 'wr' | 'rw' | 'time'
  readonly why: string
}

/**
 * A shortest cycle of each group of nodes that reach one another, shortest first. One node has no cycle: nothing comes
 * before itself.
 */
export function findCycles(size: number, edges: readonly Edge[]): readonly (readonly Edge[])[] {
  const from: Edge[][] = Array.from({ length: size }, () => [])
  for (const edge of edges) from[edge.from]?.push(edge)
  const groupOf = groupsOf(size, from)
  const members = new Map<number, number[]>()
  for (let node = 0; node < size; node += 1) {
    const group = groupOf[node] ?? 0
    members.set(group, [...(members.get(group) ?? []), node])
  }
  return [...members.values()]
    .filter((nodes) => nodes.length > 1)
    .map((nodes) => shortestOf(nodes, from))
    .sort((a, b) => a.length - b.length)
}

/** How many starts are tried for a cycle that is shorter yet: any cycle is proof. */
const STARTS = 200

function shortestOf(nodes: readonly number[], from: readonly (readonly Edge[])[]): readonly Edge[] {
  const inside = new Set(nodes)
  let best: readonly Edge[] = []
  for (const start of nodes.slice(0, STARTS)) {
    const cycle = cycleThrough(start, inside, from)
    if (best.length === 0 || cycle.length < best.length) best = cycle
    if (best.length === 2) break
  }
  return best
}

/** By breadth, so that the first way back is a shortest one. */
function cycleThrough(
  start: number,
  inside: ReadonlySet<number>,
  from: readonly (readonly Edge[])[],
): readonly Edge[] {
  const cameBy = new Map<number, Edge>()
  const line = [start]
  for (const node of line) {
    for (const edge of from[node] ?? []) {
      if (!inside.has(edge.to) || cameBy.has(edge.to)) continue
      cameBy.set(edge.to, edge)
      if (edge.to === start) return wayTo(start, cameBy)
      line.push(edge.to)
    }
  }
  return []
}

function wayTo(start: number, cameBy: ReadonlyMap<number, Edge>): readonly Edge[] {
  const way: Edge[] = []
  for (let at = start; ; ) {
    const edge = cameBy.get(at)
    if (edge === undefined) return way
    way.unshift(edge)
    at = edge.from
    if (at === start) return way
  }
}

/** Which nodes reach one another: Tarjan's algorithm, with a stack of its own, since a history is long. */
function groupsOf(size: number, from: readonly (readonly Edge[])[]): Int32Array {
  const place = new Int32Array(size).fill(-1)
  const low = new Int32Array(size)
  const group = new Int32Array(size).fill(-1)
  const stack: number[] = []
  let places = 0
  const enter = (node: number) => {
    place[node] = places
    low[node] = places
    places += 1
    stack.push(node)
    return { node, next: 0 }
  }
  for (let root = 0; root < size; root += 1) {
    if (place[root] !== -1) continue
    const path = [enter(root)]
    for (let here = path.at(-1); here !== undefined; here = path.at(-1)) {
      const { node } = here
      const edge = from[node]?.[here.next]
      here.next += 1
      if (edge !== undefined) {
        if (place[edge.to] === -1) path.push(enter(edge.to))
        else if (group[edge.to] === -1) low[node] = Math.min(at(low, node), at(place, edge.to))
        continue
      }
      path.pop()
      const before = path.at(-1)?.node
      if (before !== undefined) low[before] = Math.min(at(low, before), at(low, node))
      if (low[node] !== place[node]) continue
      for (let member = -1; member !== node; ) {
        member = stack.pop() ?? node
        group[member] = node
      }
    }
  }
  return group
}

function at(numbers: Int32Array, index: number): number {
  return numbers[index] ?? 0
}

/** What one process did, when, and what it was told: the least that every checker needs. */
export interface Recorded {
  /** Process and call, for people: `worker-2.1#17`. */
  readonly name: string
  /** By the machine's monotonic clock, taken before the request was sent. */
  readonly invokedMs: number
  /** Taken after the answer was had; `Infinity` if none came: it may take effect at any later time, or never. */
  readonly endedMs: number
  readonly outcome: Outcome
}

/** `failed`: it changed nothing. `unknown`: nobody knows whether it did, and it may yet. */
export type Outcome = 'ok' | 'failed' | 'unknown'

/** When, as people read it: seconds since the start of a run. */
export function spanOf({ invokedMs, endedMs }: Recorded, fromMs = 0): string {
  const at = (ms: number) => ((ms - fromMs) / 1000).toFixed(4)
  return `[${at(invokedMs)} s, ${Number.isFinite(endedMs) ? `${at(endedMs)} s` : 'never answered'}]`
}

export function groupBy<T, K>(items: readonly T[], keyOf: (item: T) => K): ReadonlyMap<K, readonly T[]> {
  const groups = new Map<K, T[]>()
  for (const item of items) {
    const key = keyOf(item)
    const group = groups.get(key)
    if (group === undefined) groups.set(key, [item])
    else group.push(item)
  }
  return groups
}

const STEPS = [
  { ms: 86_400_000, unit: 'd' },
  { ms: 3_600_000, unit: 'h' },
  { ms: 60_000, unit: 'min' },
  { ms: 1000, unit: 's' },
  { ms: 1, unit: 'ms' },
] as const

/** A span of time for people, in its largest unit: `3 min`. */
export function span(ms: number): string {
  const length = Math.max(0, Math.round(ms))
  const step = STEPS.find((each) => length >= each.ms) ?? STEPS[4]
  return `${Math.floor(length / step.ms)} ${step.unit}`
}

/** An instant for people: ISO 8601 in UTC, to the second. */
export function at(instant: Date | null): string {
  return instant === null ? 'an unknown time' : `${instant.toISOString().slice(0, 19)}Z`
}

/** How long `instant` is over, as seen at `now`. */
export function ago(instant: Date, now: Date): string {
  return `${span(now.getTime() - instant.getTime())} ago`
}

/** How far `instant` is ahead, as seen at `now`. */
export function inTime(instant: Date, now: Date): string {
  return `in ${span(instant.getTime() - now.getTime())}`
}

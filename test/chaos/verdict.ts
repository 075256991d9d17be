export interface Verdict {
  readonly name: string
  readonly promise: string
  /** How many facts were looked at: a check of nothing proves nothing. */
  readonly checked: number
  readonly violations: readonly string[]
}

import { AssertionError } from 'node:assert'

/** How often an effect of the ledger was called, or a method of a fake, in one run. */
export interface CalledEffect {
  /** `send:email "confirmation:42"`, or `mailer.send`. */
  readonly effect: string
  readonly calls: number
}

/** The same, beside the undisturbed run. */
export interface ComparedEffect extends CalledEffect {
  /** How often it was called without the death. */
  readonly undisturbed: number
}

/**
 * What dying at one step led to. `same`: the same as without it. `asks`: an effect is in doubt, or the job had no attempt left, so the
 * job waits for a person. `differs`: something was done twice, or not at all. `not-reached`: this time the handler did not come there.
 */
export type CrashVerdict = 'same' | 'asks' | 'differs' | 'not-reached'

/** One step of a handler, and what dying there led to. */
export interface CrashPoint {
  /** Its number, from 1. */
  readonly step: number
  /** Where the process died: `send:email called, before its record`. */
  readonly name: string
  readonly verdict: CrashVerdict
  /** True for `same`; for `asks` too, if nothing happened more often than without the death. */
  readonly ok: boolean
  /** Attempts that the job took. */
  readonly attempts: number
  /** The state that the job ended in, and why. */
  readonly ended: string
  /** How what was observed differs from the undisturbed run. */
  readonly differences: readonly string[]
  readonly effects: readonly ComparedEffect[]
}

/** What `everyCrashPoint` found. */
export class CrashReport {
  readonly job: string
  /** What was observed when nothing died. */
  readonly expected: unknown
  readonly points: readonly CrashPoint[]

  /** @internal */
  constructor(facts: {
    readonly job: string
    readonly expected: unknown
    readonly points: readonly CrashPoint[]
  }) {
    this.job = facts.job
    this.expected = facts.expected
    this.points = facts.points
  }

  /** True if dying at any step does no harm. */
  get ok(): boolean {
    return this.points.every((point) => point.ok)
  }

  /** Does nothing if {@link ok}. @throws {AssertionError} It is not; the message is the table. */
  assert(): void {
    if (this.ok) return
    throw new AssertionError({
      message: this.toString(),
      actual: this.points.filter((point) => !point.ok),
      expected: [],
      operator: 'everyCrashPoint',
    })
  }

  /** The table, for people. */
  toString(): string {
    const bad = this.points.filter((point) => !point.ok).length
    const steps = `${this.points.length} ${this.points.length === 1 ? 'step' : 'steps'}`
    const found = bad === 0 ? 'dying at any of them does no harm' : `dying at ${bad} of them does harm`
    const header = ['step', 'dies at', 'attempts', 'ended', 'compared']
    const rows = this.points.map((point) => [
      String(point.step),
      point.name,
      String(point.attempts),
      point.ended,
      verdictText(point),
    ])
    const widths = header.map((title, column) =>
      Math.max(title.length, ...rows.map((row) => (row[column] as string).length)),
    )
    const line = (cells: readonly string[]) =>
      cells
        .map((cell, column) => cell.padEnd(widths[column] as number))
        .join('  ')
        .trimEnd()
    const body = this.points.flatMap((point, index) => [
      line(rows[index] as readonly string[]),
      ...detailsOf(point).map((detail) => `      ${detail}`),
    ])
    return [`job "${this.job}": ${steps}, ${found}`, '', line(header), ...body].join('\n')
  }
}

function verdictText({ verdict, ok }: CrashPoint): string {
  if (verdict === 'same') return 'same'
  if (verdict === 'not-reached') return 'NOT REACHED'
  if (verdict === 'asks') return ok ? 'asks a person' : 'ASKS A PERSON, AND DIFFERS'
  return 'DIFFERS'
}

function detailsOf({ ok, differences, effects }: CrashPoint): readonly string[] {
  const repeated = effects.filter(({ calls, undisturbed }) => calls > undisturbed)
  return [
    ...(ok ? [] : differences),
    ...repeated.map(
      ({ effect, calls, undisturbed }) => `${effect} was called ${calls} times rather than ${undisturbed}`,
    ),
  ]
}

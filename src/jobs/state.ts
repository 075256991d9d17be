/**
 * The states of a job. Each is the table that the job is in (see `sql/schema.sql`):
 *
 * ```
 * scheduled ──due──► available ──claim──► executing ──► completed
 *     ▲                  ▲                    │
 *     │ snooze           │ hand back, rescue  ├──► discarded   (a person decides: retry, or leave)
 *     └──────────────────┼────────────────────┤
 *                        │                    └──► cancelled
 *                    retryable ◄── failed ────┘
 * ```
 */
export const jobStates = [
  'scheduled',
  'available',
  'executing',
  'retryable',
  'completed',
  'cancelled',
  'discarded',
] as const

/** Where a job is in its life: see the drawing above, and `docs/concepts/job-lifecycle.md`. */
export type JobState = (typeof jobStates)[number]

/** States that a job does not leave by itself. */
export const terminalStates = ['completed', 'cancelled', 'discarded'] as const satisfies readonly JobState[]

export function isTerminal(state: JobState): boolean {
  return (terminalStates as readonly JobState[]).includes(state)
}

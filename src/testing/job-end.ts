import type { CommittedOutcome, Outcome } from '../worker/outcome.ts'

/**
 * What became of a job by one attempt. `retried`: it failed, and another attempt follows. `handed-back`: it was not recorded
 * as an attempt. `refused`: the job was another worker's by then. `killed`: the test kit ended it at one of its steps.
 */
export type JobOutcome =
  | 'completed'
  | 'retried'
  | 'discarded'
  | 'cancelled'
  | 'snoozed'
  | 'parked'
  | 'handed-back'
  | 'refused'
  | 'killed'

/** One attempt that was run. */
export interface JobEnd {
  readonly id: string
  readonly name: string
  /** Its number, from 1. */
  readonly attempt: number
  readonly outcome: JobOutcome
  /** What the handler threw, if it failed by that. */
  readonly error: unknown
}

export function outcomeOf(
  outcome: Outcome | CommittedOutcome,
  answer: 'recorded' | 'refused' | 'cancelled',
): JobOutcome {
  if (answer !== 'recorded') return answer
  switch (outcome.to) {
    case 'completed':
    case 'committed':
      return 'completed'
    case 'scheduled':
      return outcome.ended === 'snoozed' ? 'snoozed' : 'retried'
    case 'ready':
      return 'handed-back'
    default:
      return outcome.to
  }
}

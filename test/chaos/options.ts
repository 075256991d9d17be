import type { FaultName } from './faults.ts'
import type { Edit } from './package-copy.ts'

export interface ChaosOptions {
  readonly minutes: number
  readonly seed: number
  /** Statements of the library to break, for a negative control. */
  readonly edits?: readonly Edit[]
  /** How much longer faults are made if one has not hit often enough by then, in milliseconds. Default: 0. */
  readonly patienceMs?: number
  /** Longest time for the jobs to end once nothing is broken any more, in milliseconds. Default: 60,000. */
  readonly drainMs?: number
  /** Mean pauses between faults, in place of the usual ones. */
  readonly pace?: Partial<Readonly<Record<FaultName, number>>>
  readonly onProgress?: (line: string) => void
}

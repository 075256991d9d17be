import type { FaultName } from '../faults.ts'
import type { Edit } from '../package-copy.ts'
import type { SceneName } from '../scenes.ts'

/** A condition taken out of one statement, and what must notice. */
export interface Control {
  readonly statement: string
  readonly takesOut: string
  readonly edits: readonly Edit[]
  readonly caughtBy: { readonly scene: SceneName } | { readonly chaos: ChaosSettings }
}

interface ChaosSettings {
  readonly minutes: number
  readonly drainMs: number
  /** Faults that the control needs, more often than usual. */
  readonly pace?: Partial<Readonly<Record<FaultName, number>>>
}

/** Noticed by a run, with these faults more often than usual. */
export const chaos = (pace: ChaosSettings['pace'] = {}, minutes = 0.4) => ({
  chaos: { minutes, drainMs: 15_000, pace },
})

const sqlFolder = 'src/jobs/sql'
/** An edit of a statement of `src/jobs/sql`. */
export const edit = (file: string, find: string, replace: string): Edit => ({
  file: `${sqlFolder}/${file}.ts`,
  find,
  replace,
})

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

/** Edits of the statements of a folder. */
export const editIn =
  (folder: string) =>
  (file: string, find: string, replace: string): Edit => ({ file: `${folder}/${file}.ts`, find, replace })

/** An edit of a statement of `src/jobs/sql`. */
export const edit = editIn('src/jobs/sql')

/** The row of a fence that lets everything through. It names all parameters: PostgreSQL wants to know the type of each. */
const UNFENCED =
  'select ${p.token} as token, (${p.workerId} < 0 or ${p.jobId} < 0 or ${p.place} < 0) as cancelled'

/** Takes the fence out of one statement of an attempt. */
export const unfenced = (file: string): Edit => ({
  file,
  find: '${attemptFence(t, p)}',
  replace: `fence as (${UNFENCED})`,
})

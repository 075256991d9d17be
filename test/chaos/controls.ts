import { attemptControls } from './controls/attempts.ts'
import { claimControls } from './controls/claim.ts'
import { commitControls } from './controls/commits.ts'
import type { Control } from './controls/control.ts'
import { effectControls } from './controls/effects.ts'
import { rescueControls } from './controls/rescue.ts'
import { settleControls } from './controls/settle.ts'

/** All controls, by name. */
export const controls = {
  ...settleControls,
  ...claimControls,
  ...rescueControls,
  ...attemptControls,
  ...commitControls,
  ...effectControls,
} as const satisfies Readonly<Record<string, Control>>

export type ControlName = keyof typeof controls

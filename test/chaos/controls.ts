import { claimControls } from './controls/claim.ts'
import type { Control } from './controls/control.ts'
import { rescueControls } from './controls/rescue.ts'
import { settleControls } from './controls/settle.ts'

/** All controls, by name. */
export const controls = {
  ...settleControls,
  ...claimControls,
  ...rescueControls,
} as const satisfies Readonly<Record<string, Control>>

export type ControlName = keyof typeof controls

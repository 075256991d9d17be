import { attemptScenes } from './scenes/attempts.ts'
import { claimScenes } from './scenes/claim.ts'
import { commitScenes } from './scenes/commits.ts'
import { effectScenes } from './scenes/effects.ts'
import { rescueScenes } from './scenes/rescue.ts'
import { settleScenes } from './scenes/settle.ts'
import type { Scene } from './scenes/stage.ts'

/** All scenes, by name. */
export const scenes = {
  ...settleScenes,
  ...claimScenes,
  ...rescueScenes,
  ...attemptScenes,
  ...commitScenes,
  ...effectScenes,
} as const satisfies Readonly<Record<string, Scene>>

export type SceneName = keyof typeof scenes

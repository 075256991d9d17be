import type { SceneStage } from './stage.ts'

/** An attempt as the statements name it by which its handler writes. */
export interface Attempt {
  readonly workerId: bigint
  readonly token: bigint
  readonly jobId: string
  readonly place: number
}

/** An attempt under way: the first of the two jobs of its lease. */
export async function begun(stage: SceneStage): Promise<Attempt> {
  await stage.enqueue(2)
  const workerId = await stage.worker()
  const { token, ids } = await stage.claim(workerId, 2)
  return { workerId, token, jobId: ids[0] ?? '', place: 1 }
}

/** An attempt whose worker was declared dead, and the one that took its job over. */
export async function overtaken(
  stage: SceneStage,
): Promise<{ readonly stale: Attempt; readonly live: Attempt }> {
  const { dead, old, heir, now } = await stage.takenOver()
  const [jobId = ''] = old.ids
  return {
    stale: { workerId: dead, token: old.token, jobId, place: 1 },
    live: { workerId: heir, token: now.token, jobId, place: now.ids.indexOf(jobId) + 1 },
  }
}

import assert from 'node:assert/strict'
import type { Database } from '../../../src/driver/operation.ts'
import { type Attempt, begun, overtaken } from './attempt.ts'
import { BLOCKED_MS, type Scene, type SceneStage, withinMs } from './stage.ts'

async function fence(stage: SceneStage, attempt: Attempt, db: Database = stage.db): Promise<boolean> {
  const { operation, fenceAttempt } = stage.library
  return (await operation.runOne(db, fenceAttempt.fenceAttempt, { ...attempt, idleMs: null })).live
}

async function checkpoint(stage: SceneStage, attempt: Attempt, value: number): Promise<boolean> {
  const { operation, saveCheckpoint } = stage.library
  const request = { ...attempt, value: JSON.stringify(value) }
  return (await operation.runOne(stage.db, saveCheckpoint.saveCheckpoint, request)).live
}

async function progress(stage: SceneStage, attempt: Attempt, fraction: number): Promise<boolean> {
  const { operation, saveProgress } = stage.library
  const request = { ...attempt, fraction, note: null }
  return (await operation.runOne(stage.db, saveProgress.saveProgress, request)).live
}

async function saved(stage: SceneStage): Promise<readonly Record<string, unknown>[]> {
  return await stage.sql('select value, fraction from holdfast.checkpoint')
}

/** Scenes of what a handler writes before its attempt ends: fences, checkpoints, progress. */
export const attemptScenes = {
  staleFence: {
    promise: 'fence_attempt refuses an attempt whose lease was rescued',
    play: async (stage) => {
      const { stale, live } = await overtaken(stage)
      assert.deepEqual([await fence(stage, stale), await fence(stage, live)], [false, true])
    },
  },
  fenceOfAnotherWorker: {
    promise: 'an attempt is its own worker’s only',
    play: async (stage) => {
      const attempt = await begun(stage)
      const workerId = await stage.worker()
      assert.deepEqual(
        [await fence(stage, { ...attempt, workerId }), await fence(stage, attempt)],
        [false, true],
      )
    },
  },
  fenceOfAnotherJob: {
    promise: 'an attempt is of the job that its lease holds at its place',
    play: async (stage) => {
      const attempt = await begun(stage)
      const [jobId = ''] = await stage.enqueue(1)
      assert.equal(await fence(stage, { ...attempt, jobId }), false)
    },
  },
  fenceAfterTheEnd: {
    promise: 'an attempt writes nothing once its end is recorded, though its lease lives on',
    play: async (stage) => {
      const attempt = await begun(stage)
      await stage.settle(attempt.workerId, attempt.token, [attempt.jobId], {
        to: 'scheduled',
        ended: 'failed',
        delay: 60_000,
      })
      assert.equal(await fence(stage, attempt), false)
    },
  },
  fenceKeepsTheLease: {
    promise: 'a rescue passes over a lease while a transaction of its attempt is open',
    play: async (stage) => {
      const attempt = await begun(stage)
      await stage.silence(attempt.workerId)
      await stage.whileOpen(
        async (db) => assert.equal(await fence(stage, attempt, db), true),
        async () => assert.deepEqual(await withinMs(BLOCKED_MS, 'a rescue', stage.rescue()), []),
      )
    },
  },
  staleCheckpoint: {
    promise: 'save_checkpoint refuses an attempt whose lease was rescued',
    play: async (stage) => {
      const { stale } = await overtaken(stage)
      assert.equal(await checkpoint(stage, stale, 1), false)
      assert.deepEqual(await saved(stage), [])
    },
  },
  staleCheckpointOverANewer: {
    promise: 'a checkpoint of an older attempt never replaces one of a newer',
    play: async (stage) => {
      const { stale, live } = await overtaken(stage)
      await checkpoint(stage, live, 2)
      await checkpoint(stage, stale, 1)
      assert.deepEqual(await saved(stage), [{ value: 2, fraction: null }])
    },
  },
  staleProgress: {
    promise: 'save_progress refuses an attempt whose lease was rescued',
    play: async (stage) => {
      const { stale } = await overtaken(stage)
      assert.equal(await progress(stage, stale, 0.5), false)
      assert.deepEqual(await saved(stage), [])
    },
  },
  staleProgressOverANewer: {
    promise: 'progress of an older attempt never replaces that of a newer',
    play: async (stage) => {
      const { stale, live } = await overtaken(stage)
      await progress(stage, live, 0.2)
      await progress(stage, stale, 0.9)
      assert.deepEqual(await saved(stage), [{ value: null, fraction: 0.2 }])
    },
  },
  checkpointOfTheCancelled: {
    promise: 'save_checkpoint and save_progress keep nothing of a job that was cancelled',
    play: async (stage) => {
      const attempt = await begun(stage)
      const { cancel } = stage.library.cancel
      await cancel(attempt.jobId, undefined, { driver: stage.driver, database: stage.db })
      await checkpoint(stage, attempt, 1)
      await progress(stage, attempt, 0.5)
      assert.deepEqual(await saved(stage), [])
    },
  },
  progressNeverFalls: {
    promise: 'progress never falls',
    play: async (stage) => {
      const attempt = await begun(stage)
      await progress(stage, attempt, 0.6)
      await progress(stage, attempt, 0.4)
      assert.deepEqual(await saved(stage), [{ value: null, fraction: 0.6 }])
    },
  },
} as const satisfies Readonly<Record<string, Scene>>

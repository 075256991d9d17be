import assert from 'node:assert/strict'
import type { Database } from '../../../src/driver/operation.ts'
import { type Attempt, begun, overtaken } from './attempt.ts'
import type { Scene, SceneStage } from './stage.ts'

async function complete(stage: SceneStage, attempt: Attempt, db: Database = stage.db) {
  const { operation, completeInTransaction } = stage.library
  const request = { ...attempt, durationMs: 1, late: false, result: null }
  return await operation.runOne(db, completeInTransaction.completeInTransaction, request)
}

/** What a worker does that lost the answer to its commit. */
async function wasCommitted(stage: SceneStage, { jobId, token }: Pick<Attempt, 'jobId' | 'token'>) {
  const { operation, lockLease, findCompletion } = stage.library
  return await stage.driver.transaction(async (tx) => {
    await operation.run(stage.on(tx), lockLease.lockLease, { token })
    return (await operation.run(stage.on(tx), findCompletion.findCompletion, { jobId, token })).length > 0
  })
}

/** Scenes of the completion that commits with a handler's own writes. */
export const commitScenes = {
  staleCommit: {
    promise: 'complete_in_transaction refuses an attempt whose lease was rescued',
    play: async (stage) => {
      const { stale } = await overtaken(stage)
      assert.equal((await complete(stage, stale)).live, false)
      assert.equal(await stage.state(stale.jobId), 'executing')
    },
  },
  commitOfAnotherWorker: {
    promise: 'complete_in_transaction refuses a worker whose lease it is not',
    play: async (stage) => {
      const attempt = await begun(stage)
      assert.equal((await complete(stage, { ...attempt, workerId: await stage.worker() })).live, false)
      assert.equal(await stage.state(attempt.jobId), 'executing')
    },
  },
  commitOfAnotherJob: {
    promise: 'complete_in_transaction refuses a job that the lease does not hold',
    play: async (stage) => {
      const attempt = await begun(stage)
      const [jobId = ''] = await stage.enqueue(1)
      assert.equal((await complete(stage, { ...attempt, jobId })).live, false)
      assert.equal(await stage.state(jobId), 'available')
    },
  },
  commitAfterTheEnd: {
    promise: 'complete_in_transaction refuses an attempt that has ended otherwise',
    play: async (stage) => {
      const attempt = await begun(stage)
      await stage.settle(attempt.workerId, attempt.token, [attempt.jobId], {
        to: 'scheduled',
        ended: 'failed',
        delay: 60_000,
      })
      assert.equal((await complete(stage, attempt)).live, false)
      assert.equal(await stage.state(attempt.jobId), 'retryable')
    },
  },
  commitOfTheCancelled: {
    promise: 'complete_in_transaction leaves a job that was cancelled',
    play: async (stage) => {
      const attempt = await begun(stage)
      const { cancel } = stage.library.cancel
      await cancel(attempt.jobId, undefined, { driver: stage.driver, database: stage.db })
      assert.equal((await complete(stage, attempt)).cancelled, true)
      assert.equal(await stage.state(attempt.jobId), 'executing')
    },
  },
  cancelDuringCommit: {
    promise: 'a cancel that meets a commit waits for it, and does not call a completed job cancelled',
    play: async (stage) => {
      const attempt = await begun(stage)
      const { cancel } = stage.library.cancel
      let answer: ReturnType<typeof cancel> | undefined
      await stage.whileOpen(
        async (db) => await complete(stage, attempt, db),
        async () => {
          answer = cancel(attempt.jobId, undefined, { driver: stage.driver, database: stage.db })
          await stage.waiting()
        },
      )
      assert.deepEqual(await answer, { status: 'finished', state: 'completed' })
    },
  },
  commitFreesTheKey: {
    promise: 'complete_in_transaction frees the unique key of the job, and of no other',
    play: async (stage) => {
      const attempt = await begun(stage)
      await stage.sql(
        `insert into holdfast.unique_key (tenant, name, key, job_id) select '', name, id::text, id from holdfast.job`,
      )
      await complete(stage, attempt)
      const held = await stage.sql('select job_id::text as id from holdfast.unique_key')
      assert.equal(held.length, 1)
      assert.notEqual(held[0]?.['id'], attempt.jobId)
    },
  },
  decisionWaitsForTheCommit: {
    promise: 'what became of a commit without an answer is asked for when it is over',
    play: async (stage) => {
      const attempt = await begun(stage)
      let decision: Promise<boolean> | undefined
      await stage.whileOpen(
        async (db) => await complete(stage, attempt, db),
        async () => {
          decision = wasCommitted(stage, attempt)
          await stage.waiting()
        },
      )
      assert.equal(await decision, true)
    },
  },
  decisionOfAnotherToken: {
    promise: 'a completion under another token is not taken for one’s own',
    play: async (stage) => {
      const { stale, live } = await overtaken(stage)
      await complete(stage, live)
      assert.deepEqual([await wasCommitted(stage, stale), await wasCommitted(stage, live)], [false, true])
    },
  },
} as const satisfies Readonly<Record<string, Scene>>

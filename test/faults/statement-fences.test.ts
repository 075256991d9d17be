import { describe, expect, inject, test } from 'vitest'
import * as pg from '../../src/adapters/pg.ts'
import * as operation from '../../src/driver/operation.ts'
import * as askEffect from '../../src/effects/sql/ask-effect.ts'
import * as beginEffect from '../../src/effects/sql/begin-effect.ts'
import * as endEffect from '../../src/effects/sql/end-effect.ts'
import * as enterEffect from '../../src/effects/sql/enter-effect.ts'
import * as findEffect from '../../src/effects/sql/find-effect.ts'
import * as pruneEffects from '../../src/effects/sql/prune-effects.ts'
import * as recordEffect from '../../src/effects/sql/record-effect.ts'
import * as cancel from '../../src/jobs/cancel.ts'
import * as claimFewJobs from '../../src/jobs/sql/claim-few-jobs.ts'
import * as claimJobs from '../../src/jobs/sql/claim-jobs.ts'
import * as claimParkedJobs from '../../src/jobs/sql/claim-parked-jobs.ts'
import * as closeLeases from '../../src/jobs/sql/close-leases.ts'
import * as completeInTransaction from '../../src/jobs/sql/complete-in-transaction.ts'
import * as fenceAttempt from '../../src/jobs/sql/fence-attempt.ts'
import * as findCompletion from '../../src/jobs/sql/find-completion.ts'
import * as lockLease from '../../src/jobs/sql/lock-lease.ts'
import * as lockLostLeases from '../../src/jobs/sql/lock-lost-leases.ts'
import * as promoteJobs from '../../src/jobs/sql/promote-jobs.ts'
import * as registerWorker from '../../src/jobs/sql/register-worker.ts'
import * as releaseUnknownLeases from '../../src/jobs/sql/release-unknown-leases.ts'
import * as removeWorker from '../../src/jobs/sql/remove-worker.ts'
import * as renewLeases from '../../src/jobs/sql/renew-leases.ts'
import * as requeueLostLeases from '../../src/jobs/sql/requeue-lost-leases.ts'
import * as saveCheckpoint from '../../src/jobs/sql/save-checkpoint.ts'
import * as saveProgress from '../../src/jobs/sql/save-progress.ts'
import * as settleAttempts from '../../src/jobs/sql/settle-attempts.ts'
import * as settleCompleted from '../../src/jobs/sql/settle-completed.ts'
import * as migrations from '../../src/migrations/migrate.ts'
import { SceneStage } from '../chaos/scenes/stage.ts'
import { type SceneName, scenes } from '../chaos/scenes.ts'
import { createDatabase } from '../support/database.ts'

/** The scenes that `npm run chaos -- --controls` plays on a broken library, here on the sound one. */

const library = {
  pg,
  operation,
  migrations,
  cancel,
  claimFewJobs,
  claimJobs,
  claimParkedJobs,
  closeLeases,
  lockLostLeases,
  promoteJobs,
  registerWorker,
  releaseUnknownLeases,
  removeWorker,
  renewLeases,
  requeueLostLeases,
  settleAttempts,
  settleCompleted,
  askEffect,
  beginEffect,
  endEffect,
  enterEffect,
  findEffect,
  pruneEffects,
  recordEffect,
  completeInTransaction,
  fenceAttempt,
  findCompletion,
  lockLease,
  saveCheckpoint,
  saveProgress,
}

const promises = (Object.keys(scenes) as SceneName[]).map((name) => [scenes[name].promise, name] as const)

describe('a statement by which workers write', () => {
  test.each(promises)('%s', async (_, name) => {
    await using db = await createDatabase({ server: inject('postgresUrl') })
    const stage = new SceneStage(library, db.url)
    try {
      // A scene asserts by itself, without vitest: the controls play it on broken copies.
      await expect(scenes[name].play(stage)).resolves.toBeUndefined()
    } finally {
      await stage.close()
    }
  })
})

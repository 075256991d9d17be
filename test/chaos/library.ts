import path from 'node:path'
import { pathToFileURL } from 'node:url'

/** The parts of the library below its public door that scenarios call one by one. */
export interface Library {
  readonly pg: typeof import('../../src/adapters/pg.ts')
  readonly operation: typeof import('../../src/driver/operation.ts')
  readonly migrations: typeof import('../../src/migrations/migrate.ts')
  readonly cancel: typeof import('../../src/jobs/cancel.ts')
  readonly claimFewJobs: typeof import('../../src/jobs/sql/claim-few-jobs.ts')
  readonly claimJobs: typeof import('../../src/jobs/sql/claim-jobs.ts')
  readonly claimParkedJobs: typeof import('../../src/jobs/sql/claim-parked-jobs.ts')
  readonly closeLeases: typeof import('../../src/jobs/sql/close-leases.ts')
  readonly lockLostLeases: typeof import('../../src/jobs/sql/lock-lost-leases.ts')
  readonly promoteJobs: typeof import('../../src/jobs/sql/promote-jobs.ts')
  readonly registerWorker: typeof import('../../src/jobs/sql/register-worker.ts')
  readonly releaseUnknownLeases: typeof import('../../src/jobs/sql/release-unknown-leases.ts')
  readonly removeWorker: typeof import('../../src/jobs/sql/remove-worker.ts')
  readonly renewLeases: typeof import('../../src/jobs/sql/renew-leases.ts')
  readonly requeueLostLeases: typeof import('../../src/jobs/sql/requeue-lost-leases.ts')
  readonly settleAttempts: typeof import('../../src/jobs/sql/settle-attempts.ts')
  readonly settleCompleted: typeof import('../../src/jobs/sql/settle-completed.ts')
  readonly askEffect: typeof import('../../src/effects/sql/ask-effect.ts')
  readonly beginEffect: typeof import('../../src/effects/sql/begin-effect.ts')
  readonly endEffect: typeof import('../../src/effects/sql/end-effect.ts')
  readonly enterEffect: typeof import('../../src/effects/sql/enter-effect.ts')
  readonly findEffect: typeof import('../../src/effects/sql/find-effect.ts')
  readonly pruneEffects: typeof import('../../src/effects/sql/prune-effects.ts')
  readonly recordEffect: typeof import('../../src/effects/sql/record-effect.ts')
  readonly completeInTransaction: typeof import('../../src/jobs/sql/complete-in-transaction.ts')
  readonly fenceAttempt: typeof import('../../src/jobs/sql/fence-attempt.ts')
  readonly findCompletion: typeof import('../../src/jobs/sql/find-completion.ts')
  readonly lockLease: typeof import('../../src/jobs/sql/lock-lease.ts')
  readonly saveCheckpoint: typeof import('../../src/jobs/sql/save-checkpoint.ts')
  readonly saveProgress: typeof import('../../src/jobs/sql/save-progress.ts')
}

const files: Readonly<Record<keyof Library, string>> = {
  pg: 'adapters/pg',
  operation: 'driver/operation',
  migrations: 'migrations/migrate',
  cancel: 'jobs/cancel',
  claimFewJobs: 'jobs/sql/claim-few-jobs',
  claimJobs: 'jobs/sql/claim-jobs',
  claimParkedJobs: 'jobs/sql/claim-parked-jobs',
  closeLeases: 'jobs/sql/close-leases',
  lockLostLeases: 'jobs/sql/lock-lost-leases',
  promoteJobs: 'jobs/sql/promote-jobs',
  registerWorker: 'jobs/sql/register-worker',
  releaseUnknownLeases: 'jobs/sql/release-unknown-leases',
  removeWorker: 'jobs/sql/remove-worker',
  renewLeases: 'jobs/sql/renew-leases',
  requeueLostLeases: 'jobs/sql/requeue-lost-leases',
  settleAttempts: 'jobs/sql/settle-attempts',
  settleCompleted: 'jobs/sql/settle-completed',
  askEffect: 'effects/sql/ask-effect',
  beginEffect: 'effects/sql/begin-effect',
  endEffect: 'effects/sql/end-effect',
  enterEffect: 'effects/sql/enter-effect',
  findEffect: 'effects/sql/find-effect',
  pruneEffects: 'effects/sql/prune-effects',
  recordEffect: 'effects/sql/record-effect',
  completeInTransaction: 'jobs/sql/complete-in-transaction',
  fenceAttempt: 'jobs/sql/fence-attempt',
  findCompletion: 'jobs/sql/find-completion',
  lockLease: 'jobs/sql/lock-lease',
  saveCheckpoint: 'jobs/sql/save-checkpoint',
  saveProgress: 'jobs/sql/save-progress',
}

/** The library as it was compiled to `dir`. */
export async function loadLibrary(dir: string): Promise<Library> {
  const loaded = Object.entries(files).map(async ([name, file]) => {
    const url = pathToFileURL(path.join(dir, 'src', `${file}.js`)).href
    return [name, (await import(url)) as unknown] as const
  })
  return Object.fromEntries(await Promise.all(loaded)) as unknown as Library
}

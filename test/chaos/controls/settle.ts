import { type Control, chaos, edit } from './control.ts'

/** Outcomes no longer need a lease: whoever names a job completes it. */
const unfencedSettle = [edit('settle-completed', 'join fence on fence.nth', 'left join fence on fence.nth')]
const unfencedAttempts = [
  edit(
    'settle-attempts',
    'from open g join held on held.token = g.token and held.job_id = g.job',
    'from open g join (select g.token, g.job as job_id, coalesce(h.seq, g.job) as seq, coalesce(h.attempt, 1) as attempt, coalesce(h.crashes, 0) as crashes, h.cancelled, h.cancel_reasons from given g left join held h on h.token = g.token and h.job_id = g.job) held on held.token = g.token and held.job_id = g.job',
  ),
]

const completedBefore = edit(
  'settle-completed',
  'where (given.job_id, fence.token) not in (select job_id, token from ${t.attempt} where token = any (${p.tokens}))',
  '',
)
const failedBefore = edit(
  'settle-attempts',
  'where not ${hasAttempt(t, sql `g.job`, sql `g.token`)} and not',
  'where not',
)

/** What is taken out of the statements that end attempts. */
export const settleControls = {
  'settle-without-lease': {
    statement: 'settle_completed',
    takesOut: 'the lease: any worker completes any job it names',
    edits: unfencedSettle,
    caughtBy: { scene: 'releasedCompletion' },
  },
  'settle-unfenced': {
    statement: 'settle_completed',
    takesOut: 'the lease, and that the attempt has not ended',
    edits: [...unfencedSettle, completedBefore],
    caughtBy: { scene: 'staleCompletion' },
  },
  'settle-unfenced-in-a-run': {
    statement: 'settle_completed',
    takesOut: 'the same, found by a run',
    edits: [...unfencedSettle, completedBefore],
    caughtBy: chaos({ zombie: 1500 }),
  },
  'settle-and-claim-unfenced': {
    statement: 'settle_and_claim',
    takesOut: 'the lease, and that the attempt has not ended',
    edits: [...unfencedSettle, completedBefore],
    caughtBy: { scene: 'staleCompletionWithClaim' },
  },
  'settle-of-any-job': {
    statement: 'settle_completed',
    takesOut: 'that the job belongs to the lease: one lease opens every job',
    edits: [edit('settle-completed', ' and fence.job_ids[given.place] = given.job_id', '')],
    caughtBy: { scene: 'jobOfNoLease' },
  },
  'settle-under-any-worker': {
    statement: 'settle_completed, settle_and_claim, settle_attempts',
    takesOut: 'whose lease it is',
    edits: [
      edit(
        'settle-completed',
        'and worker_id + 0 = ${p.workerId} order by token',
        'and ${p.workerId} > 0 order by token',
      ),
    ],
    caughtBy: { scene: 'leaseOfAnother' },
  },
  'settle-after-hand-back': {
    statement: 'settle_completed',
    takesOut: 'that the attempt has not ended otherwise',
    edits: [completedBefore],
    caughtBy: { scene: 'handedBackThenCompleted' },
  },
  'close-the-unfinished': {
    statement: 'close_leases',
    takesOut: 'that nothing of the lease is left',
    edits: [
      edit(
        'close-leases',
        'where not ${isSettled(t, sql `held.job_id`, sql `held.token`)}',
        'where false and not ${isSettled(t, sql `held.job_id`, sql `held.token`)}',
      ),
    ],
    caughtBy: { scene: 'closingOfTheFinished' },
  },
  'close-of-others': {
    statement: 'close_leases',
    takesOut: 'whose lease it is',
    edits: [edit('close-leases', 'and worker_id + 0 = ${p.workerId}', 'and ${p.workerId} > 0')],
    caughtBy: { scene: 'closingOfTheFinished' },
  },
  'fail-without-lease': {
    statement: 'settle_attempts',
    takesOut: 'the lease',
    edits: unfencedAttempts,
    caughtBy: { scene: 'releasedFailure' },
  },
  'fail-unfenced': {
    statement: 'settle_attempts',
    takesOut: 'the lease, and that the attempt has not ended',
    edits: [...unfencedAttempts, failedBefore],
    caughtBy: { scene: 'staleFailure' },
  },
  'fail-any-job': {
    statement: 'settle_attempts',
    takesOut: 'that the job belongs to the lease',
    edits: unfencedAttempts,
    caughtBy: { scene: 'failedJobOfNoLease' },
  },
  'fail-twice': {
    statement: 'settle_attempts',
    takesOut: 'that the attempt has not ended before',
    edits: [failedBefore],
    caughtBy: { scene: 'failureTwice' },
  },
  'fail-the-ended': {
    statement: 'settle_attempts',
    takesOut: 'that the job has not ended',
    edits: [edit('settle-attempts', 'and not ${hasEnded(t, sql `g.job`)}', '')],
    caughtBy: { scene: 'failureAfterCompletion' },
  },
  'cancel-without-lock': {
    statement: 'cancel_job',
    takesOut: 'the lock on the lease before the look',
    edits: [edit('lock-lease-of-job', 'order by token for no key update', 'order by token')],
    caughtBy: { scene: 'cancelDuringSettle' },
  },
} as const satisfies Readonly<Record<string, Control>>

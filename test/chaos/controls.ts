import type { FaultName } from './faults.ts'
import type { Edit } from './package-copy.ts'
import type { SceneName } from './scenarios.ts'

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

const chaos = (pace: ChaosSettings['pace'] = {}, minutes = 0.4) => ({
  chaos: { minutes, drainMs: 15_000, pace },
})

const sqlFolder = 'src/jobs/sql'
const edit = (file: string, find: string, replace: string): Edit => ({
  file: `${sqlFolder}/${file}.ts`,
  find,
  replace,
})

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

export const controls = {
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
  'claim-without-skip': {
    statement: 'claim_jobs',
    takesOut: 'skip locked: claims wait for one another',
    edits: [
      edit(
        'claim-jobs',
        'order by r.priority, r.seq limit 400 for update skip locked',
        'order by r.seq limit 400 for update',
      ),
    ],
    caughtBy: { scene: 'twoClaims' },
  },
  'claim-without-taking': {
    statement: 'claim_jobs',
    takesOut: 'the delete: what is claimed stays claimable',
    edits: [
      edit(
        'claim-jobs',
        'delete from ${t.ready} where ctid = any',
        'select queue, priority, seq, job_id, attempts, crashes, care from ${t.ready} where ctid = any',
      ),
      edit('claim-jobs', '\n      returning queue, priority, seq, job_id, attempts, crashes, care\n', '\n'),
    ],
    caughtBy: chaos({}, 0.2),
  },
  'claim-of-paused': {
    statement: 'claim_jobs',
    takesOut: 'the pause',
    edits: [
      edit(
        'claim-jobs',
        'where not exists (select from ${t.queue} q where q.name = asked.queue and q.paused_at is not null)',
        '',
      ),
    ],
    caughtBy: { scene: 'pausedQueue' },
  },
  'claim-of-many-suspects': {
    statement: 'claim_jobs',
    takesOut: 'that jobs which lost two workers run alone',
    edits: [edit('claim-jobs', 'and (care = 1 or nth_of_care = 1)', '')],
    caughtBy: { scene: 'suspectsAlone' },
  },
  'claim-few-without-skip': {
    statement: 'claim_few_jobs',
    takesOut: 'skip locked: claims wait for one another',
    edits: [edit('claim-few-jobs', 'for update skip locked', 'for update')],
    caughtBy: { scene: 'twoFewClaims' },
  },
  'claim-few-without-taking': {
    statement: 'claim_few_jobs',
    takesOut: 'the delete: what is claimed stays claimable',
    edits: [
      edit(
        'claim-few-jobs',
        'delete from ${t.ready} where ctid = any',
        'select seq, job_id, priority, attempts, crashes, care from ${t.ready} where ctid = any',
      ),
      edit('claim-few-jobs', '\n      returning seq, job_id, priority, attempts, crashes, care\n', '\n'),
    ],
    caughtBy: { scene: 'twoFewClaims' },
  },
  'claim-few-of-paused': {
    statement: 'claim_few_jobs',
    takesOut: 'the pause',
    edits: [
      edit(
        'claim-few-jobs',
        'and (select paused_at from ${t.queue} q where q.name = ${p.queue}) is null',
        '',
      ),
    ],
    caughtBy: { scene: 'fewOfPausedQueue' },
  },
  'claim-few-suspects': {
    statement: 'claim_few_jobs',
    takesOut: 'that jobs which lost two workers are left',
    edits: [edit('claim-few-jobs', 'and r.care < 2 and', 'and')],
    caughtBy: { scene: 'noSuspectAmongFew' },
  },
  'claim-parked-without-skip': {
    statement: 'claim_parked_jobs',
    takesOut: 'skip locked',
    edits: [edit('claim-parked-jobs', 'for update skip locked', 'for update')],
    caughtBy: { scene: 'twoParkedClaims' },
  },
  'claim-parked-without-taking': {
    statement: 'claim_parked_jobs',
    takesOut: 'the delete: a parked job is claimed again and again',
    edits: [
      edit(
        'claim-parked-jobs',
        'delete from ${t.parked} where job_id = any',
        'select queue, priority, seq, job_id, attempts, crashes, 1::int2 as care from ${t.parked} where job_id = any',
      ),
      edit(
        'claim-parked-jobs',
        '\n      returning queue, priority, seq, job_id, attempts, crashes, 1::int2 as care\n',
        '\n',
      ),
    ],
    caughtBy: chaos({}, 0.3),
  },
  'rescue-of-the-completed': {
    statement: 'requeue_lost_leases',
    takesOut: 'that the job has no outcome',
    edits: [edit('requeue-lost-leases', 'and not ${hasEnded(t, sql `h.job_id`)} and not', 'and not')],
    caughtBy: { scene: 'rescueOfTheSettled' },
  },
  'rescue-of-the-completed-in-a-run': {
    statement: 'requeue_lost_leases',
    takesOut: 'the same, found by a run',
    edits: [edit('requeue-lost-leases', 'and not ${hasEnded(t, sql `h.job_id`)} and not', 'and not')],
    caughtBy: chaos({ kill: 1200 }),
  },
  'rescue-of-the-failed': {
    statement: 'requeue_lost_leases',
    takesOut: 'that the attempt has no row',
    edits: [edit('requeue-lost-leases', ' and not ${hasAttempt(t, sql `h.job_id`, sql `lease.token`)}', '')],
    caughtBy: { scene: 'rescueOfTheSettled' },
  },
  'rescue-again-and-again': {
    statement: 'requeue_lost_leases',
    takesOut: 'the end of the lease',
    edits: [
      edit(
        'requeue-lost-leases',
        'delete from ${t.lease} where token = any (${p.tokens}) returning token',
        'select token from ${t.lease} where token = any (${p.tokens})',
      ),
    ],
    caughtBy: { scene: 'rescueOnce' },
  },
  'rescue-without-recheck': {
    statement: 'lock_lost_leases',
    takesOut: 'the lock on the worker, and with it the second look at its heartbeat',
    edits: [
      edit('lock-lost-leases', 'order by id limit 100 for update skip locked', 'order by id limit 100'),
    ],
    caughtBy: { scene: 'rescueOfTheRenewed' },
  },
  'rescue-of-the-living': {
    statement: 'lock_lost_leases',
    takesOut: 'that the lease has run out',
    edits: [
      edit(
        'lock-lost-leases',
        "where heartbeat_at + lease_ms * interval '1 millisecond' < clock_timestamp()",
        '',
      ),
    ],
    caughtBy: { scene: 'rescueOfTheLiving' },
  },
  'rescue-of-the-living-in-a-run': {
    statement: 'lock_lost_leases',
    takesOut: 'the same, found by a run',
    edits: [
      edit(
        'lock-lost-leases',
        "where heartbeat_at + lease_ms * interval '1 millisecond' < clock_timestamp()",
        '',
      ),
    ],
    caughtBy: chaos(),
  },
  'rescue-without-orphans': {
    statement: 'lock_lost_leases',
    takesOut: 'leases whose worker is gone',
    edits: [
      edit('lock-lost-leases', 'or not exists (select from ${t.worker} w where w.id = lease.worker_id)', ''),
    ],
    caughtBy: { scene: 'rescueOfOrphans' },
  },
  'renew-for-all': {
    statement: 'renew_leases',
    takesOut: 'whose life it is: any heartbeat keeps the dead alive',
    edits: [edit('renew-leases', 'where id = ${p.workerId}\n', 'where ${p.workerId} > 0\n')],
    caughtBy: { scene: 'renewalAfterDeath' },
  },
  'renew-for-all-in-a-run': {
    statement: 'renew_leases',
    takesOut: 'the same, found by a run',
    edits: [edit('renew-leases', 'where id = ${p.workerId}\n', 'where ${p.workerId} > 0\n')],
    caughtBy: chaos(),
  },
  'renew-of-the-dead': {
    statement: 'renew_leases',
    takesOut: 'that a worker whose row is gone gets no answer',
    edits: [
      edit(
        'renew-leases',
        'update ${t.worker} set heartbeat_at = clock_timestamp() where id = ${p.workerId}\n    returning (select',
        'select (select',
      ),
    ],
    caughtBy: { scene: 'renewalAfterDeath' },
  },
  'release-of-the-known': {
    statement: 'release_unknown_leases',
    takesOut: 'which leases the worker knows',
    edits: [edit('release-unknown-leases', 'and token <> all (${p.known})', 'and ${p.known} is not null')],
    caughtBy: { scene: 'releaseOfTheUnknown' },
  },
  'release-of-the-known-in-a-run': {
    statement: 'release_unknown_leases',
    takesOut: 'the same, found by a run that loses answers',
    edits: [edit('release-unknown-leases', 'and token <> all (${p.known})', 'and ${p.known} is not null')],
    caughtBy: chaos({ loseReply: 300 }),
  },
  'release-of-others': {
    statement: 'release_unknown_leases',
    takesOut: 'whose lease it is',
    edits: [
      edit(
        'release-unknown-leases',
        'where worker_id = ${p.workerId} and token',
        'where ${p.workerId} > 0 and token',
      ),
    ],
    caughtBy: { scene: 'releaseOfTheUnknown' },
  },
  'release-of-the-settled': {
    statement: 'release_unknown_leases',
    takesOut: 'that the job is not settled',
    edits: [
      edit(
        'release-unknown-leases',
        'where not ${hasEnded(t, sql `h.job_id`)} and not ${hasAttempt(t, sql `h.job_id`, sql `unknown.token`)}',
        '',
      ),
    ],
    caughtBy: { scene: 'releaseOfTheSettled' },
  },
  'remove-with-leases': {
    statement: 'remove_worker',
    takesOut: 'that no lease is left',
    edits: [
      edit(
        'remove-worker',
        'delete from ${t.worker} where id = ${p.workerId} and (select leases from held) = 0',
        'delete from ${t.worker} where id = ${p.workerId}',
      ),
      edit(
        'remove-worker',
        'where id = ${p.workerId} and (select leases from held) > 0',
        'where id = ${p.workerId} and false',
      ),
    ],
    caughtBy: { scene: 'removalWithLeases' },
  },
  'remove-of-others': {
    statement: 'remove_worker',
    takesOut: 'whose row it is',
    edits: [
      edit(
        'remove-worker',
        'heartbeat_at = to_timestamp(0) where id = ${p.workerId} and',
        'heartbeat_at = to_timestamp(0) where',
      ),
    ],
    caughtBy: { scene: 'removalWithLeases' },
  },
  'promote-before-due': {
    statement: 'promote_jobs',
    takesOut: 'the due time',
    edits: [edit('promote-jobs', 'where run_at <= clock_timestamp() order by', 'order by')],
    caughtBy: { scene: 'promotionOfTheDue' },
  },
  'promote-before-due-in-a-run': {
    statement: 'promote_jobs',
    takesOut: 'the same, found by a run',
    edits: [edit('promote-jobs', 'where run_at <= clock_timestamp() order by', 'order by')],
    caughtBy: chaos({}, 0.2),
  },
  'promote-without-skip': {
    statement: 'promote_jobs',
    takesOut: 'skip locked',
    edits: [edit('promote-jobs', 'for update skip locked', 'for update')],
    caughtBy: { scene: 'promotionOfTheDue' },
  },
  'cancel-without-lock': {
    statement: 'cancel_job',
    takesOut: 'the lock on the lease before the look',
    edits: [edit('lock-lease-of-job', 'order by token for no key update', 'order by token')],
    caughtBy: { scene: 'cancelDuringSettle' },
  },
} as const satisfies Readonly<Record<string, Control>>

export type ControlName = keyof typeof controls

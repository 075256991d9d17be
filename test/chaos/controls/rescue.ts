import { type Control, chaos, edit } from './control.ts'

/** What is taken out of the statements that decide who lives, and take back what the dead held. */
export const rescueControls = {
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
} as const satisfies Readonly<Record<string, Control>>

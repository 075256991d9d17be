import { type Control, chaos, edit } from './control.ts'

const STATEMENT = 'complete_in_transaction'
const complete = (find: string, replace: string) => [edit('complete-in-transaction', find, replace)]

/** What is taken out of the completion that commits with a handler's own writes. */
export const commitControls = {
  'commit-unfenced': {
    statement: STATEMENT,
    takesOut: 'the lease',
    edits: complete(
      'with fence as materialized (',
      'with fence as materialized (select ${p.token} as token, 1::int2 as attempt, false as cancelled), unused as materialized (',
    ),
    caughtBy: { scene: 'staleCommit' },
  },
  'commit-without-completion-in-a-run': {
    statement: STATEMENT,
    takesOut: 'the completion: the writes commit without it, and again',
    edits: complete(
      'from fence where not cancelled',
      'from fence where not cancelled and ${p.durationMs} < 0',
    ),
    caughtBy: chaos({}, 0.3),
  },
  'commit-of-any-worker': {
    statement: STATEMENT,
    takesOut: 'whose lease it is',
    edits: complete('and l.worker_id + 0 = ${p.workerId}', 'and ${p.workerId} > 0'),
    caughtBy: { scene: 'commitOfAnotherWorker' },
  },
  'commit-of-any-job': {
    statement: STATEMENT,
    takesOut: 'that the job is the lease’s',
    edits: complete(' and l.job_ids[${p.place}] = ${p.jobId}', ''),
    caughtBy: { scene: 'commitOfAnotherJob' },
  },
  'commit-after-the-end': {
    statement: STATEMENT,
    takesOut: 'that the attempt has not ended',
    edits: complete('and not ${isSettled(t, sql `${p.jobId}`, sql `${p.token}`)}', ''),
    caughtBy: { scene: 'commitAfterTheEnd' },
  },
  'commit-of-the-cancelled': {
    statement: STATEMENT,
    takesOut: 'that nobody has cancelled the job',
    edits: complete('from fence where not cancelled', 'from fence'),
    caughtBy: { scene: 'commitOfTheCancelled' },
  },
  'commit-without-lock': {
    statement: STATEMENT,
    takesOut: 'the lock that a cancel waits for',
    edits: complete('for share of l', ''),
    caughtBy: { scene: 'cancelDuringCommit' },
  },
  'commit-keeps-the-key': {
    statement: STATEMENT,
    takesOut: 'that the unique key of this job is freed',
    edits: complete(
      'delete from ${t.unique_key} where job_id = any',
      'delete from ${t.unique_key} where job_id <> all',
    ),
    caughtBy: { scene: 'commitFreesTheKey' },
  },
  'decision-without-wait': {
    statement: 'lock_lease',
    takesOut: 'the wait for a commit that is still open',
    edits: [edit('lock-lease', 'for no key update', '')],
    caughtBy: { scene: 'decisionWaitsForTheCommit' },
  },
  'decision-of-any-token': {
    statement: 'find_completion',
    takesOut: 'under which token the job was completed',
    edits: [edit('find-completion', 'and token = ${p.token}', 'and ${p.token} > 0')],
    caughtBy: { scene: 'decisionOfAnotherToken' },
  },
} as const satisfies Readonly<Record<string, Control>>

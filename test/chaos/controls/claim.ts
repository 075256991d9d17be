import { type Control, chaos, edit } from './control.ts'

/** What is taken out of the statements that give jobs to workers. */
export const claimControls = {
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
} as const satisfies Readonly<Record<string, Control>>

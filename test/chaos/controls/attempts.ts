import { type Control, edit, editIn, unfenced } from './control.ts'

const fenceEdit = editIn('src/attempts/sql')

/** What is taken out of the statements by which a handler writes before its attempt ends. */
export const attemptControls = {
  'fence-unfenced': {
    statement: 'fence_attempt',
    takesOut: 'the fence',
    edits: [unfenced('src/jobs/sql/fence-attempt.ts')],
    caughtBy: { scene: 'staleFence' },
  },
  'fence-of-any-worker': {
    statement: 'every statement of an attempt',
    takesOut: 'whose lease it is',
    edits: [fenceEdit('attempt-fence', 'and l.worker_id + 0 = ${p.workerId}', 'and ${p.workerId} > 0')],
    caughtBy: { scene: 'fenceOfAnotherWorker' },
  },
  'fence-of-any-job': {
    statement: 'every statement of an attempt',
    takesOut: 'that the job is the lease’s',
    edits: [fenceEdit('attempt-fence', 'and l.job_ids[${p.place}] = ${p.jobId}', 'and ${p.place} > 0')],
    caughtBy: { scene: 'fenceOfAnotherJob' },
  },
  'fence-after-the-end': {
    statement: 'every statement of an attempt',
    takesOut: 'that the attempt has not ended',
    edits: [fenceEdit('attempt-fence', 'and not ${isSettled(t, sql `${p.jobId}`, sql `${p.token}`)}', '')],
    caughtBy: { scene: 'fenceAfterTheEnd' },
  },
  'fence-without-lock': {
    statement: 'every statement of an attempt',
    takesOut: 'the lock that keeps the lease until the transaction ends',
    edits: [fenceEdit('attempt-fence', 'for key share of l', '')],
    caughtBy: { scene: 'fenceKeepsTheLease' },
  },
  'checkpoint-unfenced': {
    statement: 'save_checkpoint',
    takesOut: 'the fence',
    edits: [unfenced('src/jobs/sql/save-checkpoint.ts')],
    caughtBy: { scene: 'staleCheckpoint' },
  },
  'checkpoint-by-an-older-token': {
    statement: 'save_checkpoint',
    takesOut: 'the fence, and that the token is the newest',
    edits: [
      unfenced('src/jobs/sql/save-checkpoint.ts'),
      edit('save-checkpoint', 'where c.token <= excluded.token', ''),
    ],
    caughtBy: { scene: 'staleCheckpointOverANewer' },
  },
  'progress-unfenced': {
    statement: 'save_progress',
    takesOut: 'the fence',
    edits: [unfenced('src/jobs/sql/save-progress.ts')],
    caughtBy: { scene: 'staleProgress' },
  },
  'progress-by-an-older-token': {
    statement: 'save_progress',
    takesOut: 'the fence, and that the token is the newest',
    edits: [
      unfenced('src/jobs/sql/save-progress.ts'),
      edit('save-progress', 'where c.token <= excluded.token', ''),
    ],
    caughtBy: { scene: 'staleProgressOverANewer' },
  },
  'checkpoint-of-the-cancelled': {
    statement: 'save_checkpoint',
    takesOut: 'that nobody has cancelled the job',
    edits: [edit('save-checkpoint', 'from fence where not cancelled', 'from fence')],
    caughtBy: { scene: 'checkpointOfTheCancelled' },
  },
  'progress-of-the-cancelled': {
    statement: 'save_progress',
    takesOut: 'that nobody has cancelled the job',
    edits: [edit('save-progress', 'from fence where not cancelled', 'from fence')],
    caughtBy: { scene: 'checkpointOfTheCancelled' },
  },
  'progress-that-falls': {
    statement: 'save_progress',
    takesOut: 'that it never falls',
    edits: [edit('save-progress', 'greatest(c.fraction, excluded.fraction)', 'excluded.fraction')],
    caughtBy: { scene: 'progressNeverFalls' },
  },
} as const satisfies Readonly<Record<string, Control>>

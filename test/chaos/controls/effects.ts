import { type Control, chaos, editIn, unfenced } from './control.ts'

const folder = 'src/effects/sql'
const edit = editIn(folder)

/** Whoever comes calls, whatever is known of the effect. */
const beginOfAny = edit('begin-effect', "where e.state = 'open' or", 'where true or')
/** The look before, which spares what is known a second statement, keeps such a call away too: only both of them are noticed. */
const beginOfTheKnown = edit('begin-effect', ' and not exists (select from known)', '')
const thisCall = ' and e.call = ${p.call}::uuid'
const anyCall = ' and ${p.call}::uuid is not null'

/** What is taken out of the statements of the ledger. */
export const effectControls = {
  'begin-unfenced': {
    statement: 'begin_effect',
    takesOut: 'the fence',
    edits: [unfenced(`${folder}/begin-effect.ts`)],
    caughtBy: { scene: 'staleBegin' },
  },
  'begin-of-the-cancelled': {
    statement: 'begin_effect',
    takesOut: 'that nobody has cancelled the job',
    edits: [edit('begin-effect', 'where not cancelled and not exists', 'where not exists')],
    caughtBy: { scene: 'beginOfTheCancelled' },
  },
  'begin-in-doubt': {
    statement: 'begin_effect',
    takesOut: 'that somebody has decided about the call in doubt',
    edits: [
      edit('begin-effect', 'and e.call = ${p.takes}::uuid', 'and ${p.takes}::uuid is distinct from e.call'),
    ],
    caughtBy: { scene: 'beginInDoubt' },
  },
  'begin-of-the-happened': {
    statement: 'begin_effect',
    takesOut: 'that it has not happened, and is not in doubt',
    edits: [beginOfAny, beginOfTheKnown],
    caughtBy: { scene: 'beginOfTheHappened' },
  },
  'begin-of-the-happened-in-a-run': {
    statement: 'begin_effect',
    takesOut: 'the same, found by a run',
    edits: [beginOfAny, beginOfTheKnown],
    caughtBy: chaos({ killAfterCall: 1500 }),
  },
  'begin-taking-the-happened': {
    statement: 'begin_effect',
    takesOut: 'that a call which was in doubt is so still',
    edits: [edit('begin-effect', "or (e.state <> 'happened' and", 'or (true and'), beginOfTheKnown],
    caughtBy: { scene: 'takingOverTheHappened' },
  },
  'record-unfenced': {
    statement: 'record_effect',
    takesOut: 'the fence',
    edits: [unfenced(`${folder}/record-effect.ts`)],
    caughtBy: { scene: 'staleRecord' },
  },
  'record-of-an-older-call': {
    statement: 'record_effect',
    takesOut: 'which call it was',
    edits: [edit('record-effect', thisCall, anyCall)],
    caughtBy: { scene: 'recordOfAnOlderCall' },
  },
  'record-twice': {
    statement: 'record_effect',
    takesOut: 'that it is not recorded',
    edits: [edit('record-effect', " and e.state <> 'happened'", '')],
    caughtBy: { scene: 'recordTwice' },
  },
  'end-unfenced': {
    statement: 'end_effect',
    takesOut: 'the fence',
    edits: [unfenced(`${folder}/end-effect.ts`)],
    caughtBy: { scene: 'staleEnd' },
  },
  'end-of-an-older-call': {
    statement: 'end_effect',
    takesOut: 'which call it was',
    edits: [edit('end-effect', thisCall, anyCall)],
    caughtBy: { scene: 'endOfAnOlderCall' },
  },
  'end-of-the-happened': {
    statement: 'end_effect',
    takesOut: 'that the call is under way',
    edits: [edit('end-effect', " and e.state = 'intended'", '')],
    caughtBy: { scene: 'endOfTheHappened' },
  },
  'end-forgets-doubts': {
    statement: 'end_effect',
    takesOut: 'that no call before ended in doubt',
    edits: [edit('end-effect', ' and e.doubts = 0', '')],
    caughtBy: { scene: 'endAfterADoubt' },
  },
  'held-by-nobody': {
    statement: 'find_effect',
    takesOut: 'that a call under way is somebody’s',
    edits: [edit('effect-key', 'l.token = e.token and', 'l.token is null and')],
    caughtBy: { scene: 'callUnderWay' },
  },
  'held-by-the-dead': {
    statement: 'find_effect',
    takesOut: 'that its lease is there',
    edits: [
      edit(
        'effect-key',
        '(select true from ${t.lease} l where l.token = e.token and e.job_id = any (l.job_ids) limit 1) is true',
        'true',
      ),
    ],
    caughtBy: { scene: 'callUnderWay' },
  },
  'held-after-the-end': {
    statement: 'find_effect',
    takesOut: 'that its attempt has not ended',
    edits: [
      edit(
        'effect-key',
        'and (select true from ${t.attempt} a where a.job_id = e.job_id and a.token + 0 = e.token limit 1) is not true',
        '',
      ),
    ],
    caughtBy: { scene: 'callUnderWay' },
  },
  'ask-unfenced': {
    statement: 'ask_effect',
    takesOut: 'the fence',
    edits: [unfenced(`${folder}/ask-effect.ts`)],
    caughtBy: { scene: 'staleAsk' },
  },
  'ask-of-the-decided': {
    statement: 'ask_effect',
    takesOut: 'that it is in doubt',
    edits: [edit('ask-effect', " and e.state in ('intended', 'uncertain')", '')],
    caughtBy: { scene: 'askOfTheDecided' },
  },
  'ask-of-another-call': {
    statement: 'ask_effect',
    takesOut: 'which call it was',
    edits: [edit('ask-effect', thisCall, anyCall)],
    caughtBy: { scene: 'askOfAnotherCall' },
  },
  'enter-twice': {
    statement: 'enter_effect',
    takesOut: 'that it has not happened',
    edits: [edit('enter-effect', "where e.state = 'open'", 'where true')],
    caughtBy: { scene: 'enteredOnce' },
  },
  'result-of-another': {
    statement: 'set_effect_result',
    takesOut: 'whose it is',
    edits: [
      edit(
        'enter-effect',
        'result = ${p.result}\n      where ${isEffect(p)} and e.call = ${p.call}::uuid',
        'result = ${p.result}\n      where ${isEffect(p)} and ${p.call}::uuid is not null',
      ),
    ],
    caughtBy: { scene: 'resultOfAnother' },
  },
  'leave-of-another': {
    statement: 'leave_effect',
    takesOut: 'whose it is',
    edits: [
      edit(
        'enter-effect',
        "set state = 'open', ended_at = clock_timestamp()\n      where ${isEffect(p)} and e.call = ${p.call}::uuid",
        "set state = 'open', ended_at = clock_timestamp()\n      where ${isEffect(p)} and ${p.call}::uuid is not null",
      ),
    ],
    caughtBy: { scene: 'resultOfAnother' },
  },
  'prune-of-doubts': {
    statement: 'prune_effects',
    takesOut: 'that it is known',
    edits: [
      {
        file: 'sql/migrations/0003-effects.sql',
        find: "where state in ('happened', 'open') and ended_at < now() - kept",
        replace: 'where ended_at < now() - kept',
      },
    ],
    caughtBy: { scene: 'pruneKeepsDoubts' },
  },
} as const satisfies Readonly<Record<string, Control>>

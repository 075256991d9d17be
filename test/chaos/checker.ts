import { expectedEnd, type JobName } from './chaos-app.ts'
import { type Case, casesOf, type Enqueues, enqueuesOf, type History } from './history.ts'
import { progress, recoveriesOf, restartsOf } from './recovery.ts'
import type { Verdict } from './verdict.ts'

/** A worker that was disturbed may lose its lease until so long after it could run out. */
const NOTICE_MS = 1500

export interface Verdicts {
  readonly verdicts: readonly Verdict[]
  /** From the kill to the next start or the end of each job that ran. */
  readonly killRecoveryMs: readonly number[]
  /** The same of jobs that had lost a worker just before: they wait, and run one at a time in a process. */
  readonly repeatedRecoveryMs: readonly number[]
  /** From the database's being up again to the next recorded outcome. */
  readonly restartRecoveryMs: readonly number[]
  readonly enqueues: Readonly<Record<string, number>>
}

export function check(history: History): Verdicts {
  const cases = casesOf(history)
  const enqueues = enqueuesOf(history)
  const recoveries = recoveriesOf(history, cases)
  const restarts = restartsOf(history)
  return {
    verdicts: [
      noLoss(history, cases, enqueues),
      noGhost(history, cases, enqueues),
      unknownCommits(cases, enqueues),
      fences(history, cases),
      finality(history, cases),
      attempts(cases),
      uniqueness(history, cases, enqueues),
      progress(history, recoveries, restarts),
      cancels(history, cases),
      dueTimes(history, cases),
      rescues(history, cases),
    ],
    killRecoveryMs: recoveries.filter(({ crashes }) => crashes === 0).map(({ tookMs }) => tookMs),
    repeatedRecoveryMs: recoveries.filter(({ crashes }) => crashes > 0).map(({ tookMs }) => tookMs),
    restartRecoveryMs: restarts.map(({ tookMs }) => tookMs),
    enqueues: enqueues.counts,
  }
}

/** I1: what was acknowledged is there, in exactly one place, and has ended when the run has drained. */
function noLoss(
  history: History,
  cases: ReadonlyMap<string, Case>,
  { acknowledged, intents }: Enqueues,
): Verdict {
  const violations: string[] = []
  let checked = 0
  for (const [key, answers] of acknowledged) {
    for (const { id, status } of answers) {
      checked += 1
      const found = cases.get(id)
      if (found === undefined)
        violations.push(`job ${id} (${key}) was acknowledged as ${status} and is not there`)
      else if (status === 'created' && found.row.key !== key)
        violations.push(`job ${id} was acknowledged for ${key} and is ${found.row.key}'s`)
    }
  }
  for (const { row } of cases.values()) {
    if (row.places !== 1) violations.push(`job ${row.id} (${row.name}) is in ${row.places} places`)
    if (!intents.has(row.key) && row.name !== 'pill')
      violations.push(`job ${row.id} (${row.key}) was enqueued by nobody`)
  }
  if (!history.drained) violations.push(`${history.left} jobs had not ended when the time to drain was over`)
  for (const { row } of cases.values()) {
    const expected = expectedEnd[row.name as JobName]
    if (history.drained && row.state !== expected && row.state !== 'cancelled') {
      violations.push(`job ${row.id} (${row.name}) ended ${row.state}, expected ${expected}`)
    }
  }
  return {
    name: 'I1',
    promise: 'no job is lost: acknowledged = ended + live, each in one place',
    checked,
    violations,
  }
}

/** I2: what was rolled back, or failed with nothing changed, left no job and ran never; a job and the caller's own row share their fate. */
function noGhost(
  history: History,
  cases: ReadonlyMap<string, Case>,
  { refused, intents }: Enqueues,
): Verdict {
  const violations: string[] = []
  const stored = new Set([...cases.values()].map(({ row }) => row.key))
  for (const key of refused) if (stored.has(key)) violations.push(`${key} was not committed and has a job`)
  for (const { entry } of history.workers) {
    if (entry.kind !== 'start') continue
    if (refused.has(String(entry['key'])))
      violations.push(`${String(entry['key'])} was not committed and ran`)
    if (!cases.has(String(entry['job']))) violations.push(`job ${String(entry['job'])} ran and is not there`)
  }
  let shared = 0
  for (const [key, { way }] of intents) {
    if (way !== 'transaction' && way !== 'sql' && way !== 'savepoint') continue
    shared += 1
    if (stored.has(key) !== history.orders.has(key))
      violations.push(`${key}: the caller's row and the job do not share their fate`)
  }
  return {
    name: 'I2',
    promise: 'no ghost: what was not committed never ran',
    checked: refused.size + shared,
    violations,
  }
}

/** I3: an enqueue with an idempotency key, repeated until it was answered, made one job. */
function unknownCommits(
  cases: ReadonlyMap<string, Case>,
  { acknowledged, unknown, intents }: Enqueues,
): Verdict {
  const violations: string[] = []
  const byKey = new Map<string, string[]>()
  for (const { row } of cases.values()) byKey.set(row.key, [...(byKey.get(row.key) ?? []), row.id])
  let checked = 0
  for (const [key, { way }] of intents) {
    const ids = byKey.get(key) ?? []
    if (ids.length > 1) violations.push(`${key} made the jobs ${ids.join(', ')}`)
    if (way !== 'idempotent') continue
    if (unknown.has(key)) checked += 1
    const answers = [...new Set((acknowledged.get(key) ?? []).map(({ id }) => id))]
    if (answers.length > 1) violations.push(`${key} was answered with the jobs ${answers.join(', ')}`)
    if (answers.length === 1 && ids[0] !== answers[0])
      violations.push(`${key} was answered with ${answers[0]}, stored is ${ids[0]}`)
  }
  return {
    name: 'I3',
    promise: 'a doubtful enqueue repeated with its idempotency key made one job',
    checked,
    violations,
  }
}

/**
 * I4: in the database's order, the writes accepted for a job carry growing tokens, one write each, and none comes
 * after a newer claim; what a worker was told is recorded is there, under its token.
 */
function fences(history: History, cases: ReadonlyMap<string, Case>): Verdict {
  const violations: string[] = []
  let checked = 0
  for (const { row, audit, starts } of cases.values()) {
    let newestClaim = 0n
    let lastAccepted = 0n
    for (const { what, token } of audit) {
      if (token === null) continue
      const value = BigInt(token)
      if (what === 'lease') {
        if (value <= newestClaim) violations.push(`job ${row.id}: claim ${token} after claim ${newestClaim}`)
        newestClaim = value > newestClaim ? value : newestClaim
      }
      if (what !== 'attempt' && what !== 'outcome') continue
      checked += 1
      if (value < newestClaim)
        violations.push(`job ${row.id}: a write of token ${token} was accepted after claim ${newestClaim}`)
      if (value <= lastAccepted)
        violations.push(`job ${row.id}: a write of token ${token} was accepted after one of ${lastAccepted}`)
      lastAccepted = value
    }
    const tokens = starts.map(({ token }) => token)
    if (new Set(tokens).size < tokens.length)
      violations.push(`job ${row.id}: its handler was called twice under one token`)
  }
  const accepted = new Set(
    history.audit.flatMap(({ what, job, token, detail }) =>
      what === 'outcome' || what === 'attempt' ? [`${job}:${token}:${meaningOf(String(detail))}`] : [],
    ),
  )
  for (const { entry } of history.workers) {
    if (entry.kind !== 'recorded') continue
    checked += 1
    const said = `${String(entry['job'])}:${String(entry['token'])}:${String(entry['as'])}`
    if (!accepted.has(said)) violations.push(`${entry.kind} as ${said}, and is not`)
  }
  return {
    name: 'I4',
    promise: 'one valid lease: no write with an older token is ever accepted',
    checked,
    violations,
  }
}

function meaningOf(detail: string): string {
  const word = detail.split('/')[0] ?? ''
  return word === 'timed-out' ? 'failed' : word
}

/** I5: an outcome is one row, never changed; after it nothing of the job moves or starts. */
function finality(history: History, cases: ReadonlyMap<string, Case>): Verdict {
  const violations: string[] = []
  let checked = 0
  for (const { row, audit } of cases.values()) {
    const end = audit.findIndex(({ what }) => what === 'outcome')
    if (end < 0) continue
    checked += 1
    for (const { what } of audit.slice(end + 1)) {
      if (what !== 'key-') violations.push(`job ${row.id}: ${what} after its outcome`)
    }
  }
  for (const { what, job } of history.audit) {
    if (what === 'outcome:update' || what === 'outcome:delete') violations.push(`job ${job}: ${what}`)
  }
  for (const [job, seen] of history.samples) {
    checked += 1
    const now = history.finalSamples.get(job)
    if (now !== seen) violations.push(`job ${job} had ended as ${seen} and is now ${now}`)
  }
  return { name: 'I5', promise: 'an end is final', checked, violations }
}

/**
 * I6: attempts are counted right. Every handler that was called is accounted for by one row under its token, and
 * `attempts` of the outcome is the number of those that count.
 */
function attempts(cases: ReadonlyMap<string, Case>): Verdict {
  const violations: string[] = []
  let checked = 0
  for (const { row, audit, starts } of cases.values()) {
    const ends = new Map<string, string>()
    for (const { what, token, detail } of audit)
      if (what === 'attempt') ends.set(String(token), String(detail))
    const outcome = audit.find(({ what }) => what === 'outcome')
    if (outcome === undefined) continue
    checked += 1
    const spent = [...ends.values()].filter(
      (end) => end === 'failed' || end === 'timed-out' || end === 'worker-lost',
    ).length
    const used = outcome.attempts ?? 0
    const last = outcome.token === null ? 0 : 1
    const isCancelled = outcome.detail?.startsWith('cancelled') === true
    const isRight = used === spent + last || (isCancelled && used === spent)
    if (!isRight)
      violations.push(
        `job ${row.id} (${row.name}) ended with ${used} attempts; ${spent} were spent before the last`,
      )
    if (used > row.maxAttempts) violations.push(`job ${row.id} used ${used} of ${row.maxAttempts} attempts`)
    for (const { token, attempt, life } of starts) {
      if (attempt > row.maxAttempts)
        violations.push(`job ${row.id} began attempt ${attempt} of ${row.maxAttempts}`)
      const end = token === outcome.token ? 'outcome' : ends.get(token)
      if (end === undefined || end === 'handed-back' || end === 'parked') {
        violations.push(
          `job ${row.id}: its handler ran under token ${token} in ${life.slot}, recorded is ${end ?? 'nothing'}`,
        )
      }
    }
  }
  return {
    name: 'I6',
    promise: 'attempts ≤ max; a crash uses one, a snooze or hand-back none',
    checked,
    violations,
  }
}

/** I8: of one unique key, at most one job is active; `existing` names one that was; no key outlives its job. */
function uniqueness(
  history: History,
  cases: ReadonlyMap<string, Case>,
  { acknowledged, intents }: Enqueues,
): Verdict {
  const violations: string[] = []
  let checked = 0
  const byKey = new Map<string, { id: string; from: number; to: number; toMs: number }[]>()
  for (const { row, audit } of cases.values()) {
    if (row.uniqueKey === null) continue
    checked += 1
    const from = audit.find(({ what }) => what === 'key+')
    const to = audit.find(({ what }) => what === 'outcome')
    if (from === undefined) violations.push(`job ${row.id} never held its key ${row.uniqueKey}`)
    const span = {
      id: row.id,
      from: from?.seq ?? 0,
      to: to?.seq ?? Number.POSITIVE_INFINITY,
      toMs: to?.atMs ?? Number.POSITIVE_INFINITY,
    }
    byKey.set(row.uniqueKey, [...(byKey.get(row.uniqueKey) ?? []), span])
  }
  for (const [key, spans] of byKey) {
    spans.sort((a, b) => a.from - b.from)
    for (const [index, span] of spans.entries()) {
      const next = spans[index + 1]
      if (next !== undefined && next.from < span.to)
        violations.push(`${key}: jobs ${span.id} and ${next.id} were active at once`)
    }
  }
  for (const [key, answers] of acknowledged) {
    for (const { id, status, entry } of answers) {
      if (status !== 'existing') continue
      checked += 1
      const holder = cases.get(id)
      if (holder?.row.uniqueKey !== entry['uniqueKey']) {
        violations.push(`${key} was answered "existing" with job ${id}, which does not have its key`)
        continue
      }
      const askedMs = (intents.get(key)?.t ?? 0) + history.clockOffsetMs
      const endMs = holder?.audit.find(({ what }) => what === 'outcome')?.atMs
      // The row's time is taken before its commit is seen by others.
      if (endMs !== undefined && endMs < askedMs - 1000)
        violations.push(
          `${key} was answered "existing" with job ${id}, which had ended ${askedMs - endMs} ms before it asked`,
        )
    }
  }
  if (history.drained && history.heldKeys > 0)
    violations.push(`${history.heldKeys} unique keys are held by jobs that have ended`)
  return { name: 'I8', promise: 'at most one active job per unique key', checked, violations }
}

/** A cancel's answer is kept: `cancelled` and `cancelling` jobs end cancelled, `finished` ones stay as they were. */
function cancels(history: History, cases: ReadonlyMap<string, Case>): Verdict {
  const violations: string[] = []
  let checked = 0
  for (const { entry } of history.producers) {
    if (entry.kind !== 'cancel') continue
    checked += 1
    const job = String(entry['job'])
    const row = cases.get(job)?.row
    const status = String(entry['status'])
    if (status === 'not-found') violations.push(`job ${job} was not found by a cancel`)
    if (row === undefined || row.state === null) continue
    if (status === 'finished' && row.state !== entry['state'])
      violations.push(`cancel found job ${job} ${String(entry['state'])}, it is ${row.state}`)
    const isPromised = status === 'cancelled' || status === 'cancelling'
    if (isPromised && history.drained && row.state !== 'cancelled')
      violations.push(`cancel of job ${job} was answered ${status}, it ended ${row.state}`)
  }
  return {
    name: 'cancel',
    promise: 'what a cancel was answered is what becomes of the job',
    checked,
    violations,
  }
}

/** No job starts before it is due, by PostgreSQL's clock. */
function dueTimes(history: History, cases: ReadonlyMap<string, Case>): Verdict {
  const violations: string[] = []
  let checked = 0
  for (const { row, starts } of cases.values()) {
    if (row.runAtMs === null) continue
    checked += 1
    for (const { t } of starts) {
      // For two clocks that are read apart and adjusted apart.
      const earlyMs = row.runAtMs - (t + history.clockOffsetMs) - 5
      if (earlyMs > 0) violations.push(`job ${row.id} began ${earlyMs.toFixed(1)} ms before it was due`)
    }
  }
  return { name: 'due', promise: 'no job starts before it is due', checked, violations }
}

/**
 * A lease is taken away for a reason only: its worker died, stood still, was cut off, or the database was away.
 */
function rescues(history: History, cases: ReadonlyMap<string, Case>): Verdict {
  const violations: string[] = []
  const slots = [...new Set(history.workers.map(({ life }) => life.slot))]
  const spans = [
    ...history.disturbances,
    ...history.outages.flatMap(({ downMs, upMs }) =>
      slots.map((slot) => ({ slot, fromMs: downMs, toMs: upMs })),
    ),
  ]
  let checked = 0
  let unexplained = 0
  for (const { row, audit, starts } of cases.values()) {
    for (const { what, token, detail, atMs } of audit) {
      if (what !== 'attempt' || detail !== 'worker-lost') continue
      const start = starts.find((candidate) => candidate.token === token)
      if (start === undefined) continue
      checked += 1
      const ms = atMs - history.clockOffsetMs
      const { life } = start
      const isExplained =
        life.endedMs !== undefined && life.endedMs <= ms
          ? true
          : spans.some(
              ({ slot, fromMs, toMs }) =>
                slot === life.slot && fromMs <= ms && ms <= toMs + life.leaseMs + NOTICE_MS,
            )
      if (!isExplained) {
        unexplained += 1
        violations.push(`job ${row.id} was taken from ${life.slot}, which lived and was undisturbed`)
      }
    }
  }
  // A machine that is busy with other things can make a heartbeat late; a rescue that takes from the living does so all the time.
  const allowed = Math.max(5, Math.ceil(checked * 0.05))
  return {
    name: 'rescue',
    promise: 'leases are taken from dead, stopped or cut-off workers only',
    checked,
    violations: unexplained > allowed ? violations : [],
  }
}

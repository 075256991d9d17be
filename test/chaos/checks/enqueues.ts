import { expectedEnds, type JobName } from '../chaos-app.ts'
import type { Case, Enqueues, History } from '../history.ts'
import type { Verdict } from '../verdict.ts'

/** I1: what was acknowledged is there, in exactly one place, and has ended when the run has drained. */
export function noLoss(
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
    if (!intents.has(row.key) && !isOfTheRun(row.key))
      violations.push(`job ${row.id} (${row.key}) was enqueued by nobody`)
  }
  if (!history.drained) violations.push(`${history.left} jobs had not ended when the time to drain was over`)
  for (const { row } of cases.values()) {
    const expected: readonly string[] = [...expectedEnds[row.name as JobName], 'cancelled']
    if (history.drained && !expected.includes(String(row.state))) {
      violations.push(`job ${row.id} (${row.name}) ended ${row.state}, expected ${expected.join(' or ')}`)
    }
  }
  return {
    name: 'I1',
    promise: 'no job is lost: acknowledged = ended + live, each in one place',
    checked,
    violations,
  }
}

/** Jobs that no producer enqueued: pills and the operator's, and those that commits enqueued, whose fate I7 checks. */
function isOfTheRun(key: string): boolean {
  return /^(pill|decided|child-of)-/.test(key)
}

/** I2: what was rolled back, or failed with nothing changed, left no job and ran never; a job and the caller's own row share their fate. */
export function noGhost(
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
export function unknownCommits(
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

/** I8: of one unique key, at most one job is active; `existing` names one that was; no key outlives its job. */
export function uniqueness(
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

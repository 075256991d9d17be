import type { Case, History } from '../history.ts'
import type { Verdict } from '../verdict.ts'

/**
 * I4: in the database's order, the writes accepted for a job carry growing tokens, one write each, and none comes
 * after a newer claim; what a worker was told is recorded is there, under its token.
 */
export function fences(history: History, cases: ReadonlyMap<string, Case>): Verdict {
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
export function finality(history: History, cases: ReadonlyMap<string, Case>): Verdict {
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
export function attempts(cases: ReadonlyMap<string, Case>): Verdict {
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

import { childKey } from '../effect-jobs.ts'
import type { Case, History } from '../history.ts'
import type { Verdict } from '../verdict.ts'

/**
 * I7: a job that its own commit completes has written its business rows, bumped the counter, recorded its effect and
 * enqueued its child exactly once, under the token that completed it; any other job has done nothing of it.
 */
export function atomicCommits(history: History, cases: ReadonlyMap<string, Case>): Verdict {
  const violations: string[] = []
  const rows = new Map<string, (typeof history.commits)[number][]>()
  for (const row of history.commits) rows.set(row.job, [...(rows.get(row.job) ?? []), row])
  const jobsByKey = new Map<string, number>()
  for (const { key } of history.jobs) jobsByKey.set(key, (jobsByKey.get(key) ?? 0) + 1)
  let completed = 0
  let checked = 0
  for (const { row, audit } of cases.values()) {
    if (row.name !== 'committer') continue
    checked += 1
    const outcome = audit.find(({ what }) => what === 'outcome')
    const isCompleted = outcome?.detail === 'completed'
    if (isCompleted) completed += 1
    const due = isCompleted ? 1 : 0
    const written = rows.get(row.id) ?? []
    if (written.length !== due)
      violations.push(`job ${row.id} ended ${row.state} and has ${written.length} business rows`)
    const children = jobsByKey.get(childKey(row.id)) ?? 0
    if (children !== due) violations.push(`job ${row.id} ended ${row.state} and has ${children} children`)
    for (const { token, written: effects } of written) {
      if (isCompleted && token !== outcome?.token)
        violations.push(`job ${row.id} was completed under ${outcome?.token}, its row written under ${token}`)
      if (effects !== 1) violations.push(`job ${row.id}: its effect in the transaction wrote ${effects} rows`)
    }
  }
  if (history.counted !== completed)
    violations.push(`${completed} jobs were completed by their commits, the counters say ${history.counted}`)
  return {
    name: 'I7',
    promise: 'a commit and its job’s completion: both or none, and once',
    checked,
    violations,
  }
}

/** A later attempt finds what earlier ones were told was kept; nothing of an older token comes after a newer one; progress never falls. */
export function checkpoints(history: History, cases: ReadonlyMap<string, Case>): Verdict {
  const violations: string[] = []
  const kept = new Map<string, { token: bigint; step: number }[]>()
  let checked = 0
  for (const { entry } of history.workers) {
    if (entry.kind !== 'checkpointed') continue
    const job = String(entry['job'])
    const note = { token: BigInt(String(entry['token'])), step: Number(entry['step']) }
    kept.set(job, [...(kept.get(job) ?? []), note])
  }
  for (const { entry } of history.workers) {
    if (entry.kind !== 'resumed') continue
    checked += 1
    const job = String(entry['job'])
    const token = BigInt(String(entry['token']))
    const before = (kept.get(job) ?? []).filter((note) => note.token < token).map(({ step }) => step)
    const known = Math.max(0, ...before)
    // It may be more than an attempt was told was kept: an answer can be lost.
    const from = Number(entry['from'])
    if (from < known)
      violations.push(`job ${job}, token ${token}: resumed from step ${from}, ${known} was kept before`)
  }
  const last = new Map<string, { token: bigint; fraction: number }>()
  for (const { job, token, fraction } of history.checkpoints) {
    checked += 1
    const previous = last.get(job)
    if (previous !== undefined && BigInt(token) < previous.token)
      violations.push(`job ${job}: a write of token ${token} was accepted after one of ${previous.token}`)
    if (previous !== undefined && (fraction ?? 0) < previous.fraction)
      violations.push(`job ${job}: progress fell from ${previous.fraction} to ${fraction}`)
    last.set(job, { token: BigInt(token), fraction: fraction ?? 0 })
  }
  for (const { row } of cases.values()) {
    if (row.name === 'resumer' && row.state === 'completed' && last.get(row.id)?.fraction !== 1)
      violations.push(`job ${row.id} was completed with progress ${last.get(row.id)?.fraction}`)
  }
  return {
    name: 'resume',
    promise: 'checkpoints outlive attempts; progress never falls; nothing stale is kept',
    checked,
    violations,
  }
}

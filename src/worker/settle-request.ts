import type { AttemptItem } from '../jobs/sql/settle-attempts.ts'
import type { SettleRequest } from '../jobs/sql/settle-completed.ts'
import type { Lease } from './lease.ts'
import type { Settlement, SettlementBatch } from './outbox.ts'

/** How many of the settlements are of each lease. Those of one lease mostly follow each other. */
export function leasesOf(settlements: readonly Settlement[]): ReadonlyMap<Lease, number> {
  const counts = new Map<Lease, number>()
  let from = 0
  for (const [index, { job }] of settlements.entries()) {
    if (settlements[index + 1]?.job.lease === job.lease) continue
    counts.set(job.lease, (counts.get(job.lease) ?? 0) + index + 1 - from)
    from = index + 1
  }
  return counts
}

/** Completions, as `settleCompleted` takes them. */
export function settleRequest({ settlements, workerId }: SettlementBatch): SettleRequest {
  const leases = [...leasesOf(settlements).keys()]
  let nth = 0
  const results = settlements.map(({ outcome }) => (outcome.to === 'completed' ? outcome.result : null))
  return {
    workerId,
    tokens: leases.map((lease) => lease.token),
    jobIds: settlements.map((s) => s.job.id),
    leases: settlements.map(({ job }) => {
      if (leases[nth - 1] !== job.lease) nth = leases.indexOf(job.lease) + 1
      return nth
    }),
    places: settlements.map((s) => s.job.place),
    durationsMs: settlements.map((s) => Math.round(s.durationMs)),
    results: results.some((result) => result !== null) ? results : [],
    keyedIds: settlements.filter((s) => s.job.keyed).map((s) => s.job.id),
  }
}

/** Tries with all it says, before an outcome is recorded without what may be at fault. */
const FULL_TRIES = 3
const UNSTORABLE =
  '{"name":"UnstorableOutcomeError","message":"PostgreSQL refused to store what this attempt left"}'

/** One of the `items` of `settleAttempts`. Results and errors are JSON text already and go in as they are. */
export function itemOf({ job, outcome, durationMs, failures = 0 }: Settlement): string {
  const item: AttemptItem = {
    token: String(job.lease.token),
    job: job.id,
    to: outcome.to,
    ms: Math.round(durationMs),
    ...('ended' in outcome ? { ended: outcome.ended } : {}),
    ...(outcome.to === 'parked' ? { ended: 'parked' as const, contract: outcome.contract } : {}),
    ...('delayMs' in outcome ? { delay: outcome.delayMs } : {}),
    ...('reason' in outcome ? { reason: outcome.reason } : {}),
    ...(outcome.to === 'completed' ? { late: outcome.late } : {}),
  }
  const json = JSON.stringify(item).slice(0, -1)
  if (failures >= FULL_TRIES) return `${json},"error":${UNSTORABLE}}`
  const result = outcome.to === 'completed' && outcome.result !== null ? `,"result":${outcome.result}` : ''
  const error = 'error' in outcome && outcome.error ? `,"error":${outcome.error}` : ''
  return `${json}${result}${error}}`
}

import type { Case, History } from '../history.ts'
import type { Verdict } from '../verdict.ts'

/** A worker that was disturbed may lose its lease until so long after it could run out. */
export const NOTICE_MS = 1500

/** A cancel's answer is kept: `cancelled` and `cancelling` jobs end cancelled, `finished` ones stay as they were. */
export function cancels(history: History, cases: ReadonlyMap<string, Case>): Verdict {
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
export function dueTimes(history: History, cases: ReadonlyMap<string, Case>): Verdict {
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
export function rescues(history: History, cases: ReadonlyMap<string, Case>): Verdict {
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

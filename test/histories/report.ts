import type { LoggedCall } from './call-log.ts'
import type { Verdict } from './checkers/verdict.ts'
import type { FaultCounts } from './fault-counts.ts'
import type { WorkloadName } from './workload.ts'
import { workloadsOf } from './workloads.ts'

/** What a run did, and what its checkers say. */
export interface HistoriesReport {
  readonly seed: number
  readonly seconds: number
  readonly workloads: readonly WorkloadReport[]
  readonly counts: Readonly<FaultCounts>
  /** Faults that hit too seldom, and processes that did what nobody ordered. */
  readonly problems: readonly string[]
  /** Why calls failed, and how often. */
  readonly errors: ReadonlyMap<string, number>
  /** Every verdict is `valid`, and there are no problems. */
  readonly ok: boolean
  /** Folder of the logs, if any were kept. */
  readonly artifacts?: string
}

export interface WorkloadReport {
  readonly workload: WorkloadName
  readonly calls: number
  readonly ok: number
  readonly failed: number
  readonly unknown: number
  readonly verdict: Verdict
}

export interface RunFacts {
  readonly seed: number
  readonly seconds: number
  readonly names: readonly WorkloadName[]
  readonly calls: readonly LoggedCall[]
  readonly counts: Readonly<FaultCounts>
  readonly problems: readonly string[]
}

export function reportOf(facts: RunFacts): HistoriesReport {
  const { seed, seconds, names, calls, counts, problems } = facts
  const workloads = workloadsOf(names).map(({ name, check }): WorkloadReport => {
    const own = calls.filter(({ workload }) => workload === name)
    const count = (wanted: string) => own.filter(({ outcome }) => outcome === wanted).length
    return {
      workload: name,
      calls: own.length,
      ok: count('ok'),
      failed: count('failed'),
      unknown: count('unknown'),
      verdict: check(own),
    }
  })
  const ok = problems.length === 0 && workloads.every(({ verdict }) => verdict.answer === 'valid')
  return { seed, seconds, workloads, counts, problems, errors: errorsOf(calls), ok }
}

function errorsOf(calls: readonly LoggedCall[]): ReadonlyMap<string, number> {
  const errors = new Map<string, number>()
  for (const { workload, error } of calls) {
    if (error === undefined) continue
    // Numbers tell calls apart, and not what went wrong.
    const kind = `${workload}: ${error.replaceAll(/\d+/g, 'N')}`
    errors.set(kind, (errors.get(kind) ?? 0) + 1)
  }
  return new Map([...errors].sort((a, b) => b[1] - a[1]))
}

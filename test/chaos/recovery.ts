import type { Life } from './fleet.ts'
import type { Case, History } from './history.ts'
import type { Verdict } from './verdict.ts'

const RECOVERY_SLACK_MS = 5000
const RESTART_LIMIT_MS = 10_000
/** A job that lost its worker twice in a row waits so long, doubled with each further crash. */
const CRASH_BACKOFF_MS = 2000
/** And then runs one at a time in a process, behind others of its kind. */
const SUSPECTS_WAIT_MS = 15_000

export interface Recovery {
  readonly job: string
  readonly life: Life
  /** How often in a row it had lost its worker before. */
  readonly crashes: number
  readonly tookMs: number
  readonly limitMs: number
}

/** Ends of attempts that say nothing about whether a job costs its worker's life. */
const GIVEN_BACK = new Set(['snoozed', 'handed-back', 'interrupted', 'parked'])

/** For each job that ran in a killed worker: when it ran elsewhere, or had ended. Time without a database does not count. */
export function recoveriesOf(history: History, cases: ReadonlyMap<string, Case>): readonly Recovery[] {
  return history.kills.flatMap(({ life, atMs, running }) =>
    running.flatMap((attempt) => {
      const [job = '', token = ''] = attempt.split(':')
      const found = cases.get(job)
      if (found === undefined) return []
      const { audit, starts } = found
      // Settled already: the answer was on its way when the worker died.
      const settled = audit.find(
        (row) => row.token === token && (row.what === 'outcome' || row.what === 'attempt'),
      )
      if (settled !== undefined && settled.detail !== 'worker-lost' && !settled.detail?.includes('/'))
        return []
      const next = starts.filter((start) => BigInt(start.token) > BigInt(token)).map(({ t }) => t)
      const end = audit.find(({ what }) => what === 'outcome')
      const endedMs = end === undefined ? Number.POSITIVE_INFINITY : end.atMs - history.clockOffsetMs
      const recoveredMs = Math.min(...next, endedMs)
      const before = audit.slice(
        0,
        audit.findIndex((row) => row.what === 'lease' && row.token === token),
      )
      const crashes = before
        .filter(({ what, detail }) => what === 'attempt' && !GIVEN_BACK.has(detail ?? ''))
        .toReversed()
      const inARow = crashes.findIndex(({ detail }) => detail !== 'worker-lost')
      const count = inARow < 0 ? crashes.length : inARow
      const backoffMs = count === 0 ? 0 : CRASH_BACKOFF_MS * 2 ** (count - 1) + SUSPECTS_WAIT_MS
      // Who claimed it next may have died as well, before its handler began: that is a rescue and a backoff more.
      const again = audit.filter(
        (row) =>
          row.detail === 'worker-lost' &&
          BigInt(row.token ?? 0) > BigInt(token) &&
          row.atMs - history.clockOffsetMs < recoveredMs,
      ).length
      const againMs =
        again * (life.leaseMs + RECOVERY_SLACK_MS) +
        (again === 0 ? 0 : CRASH_BACKOFF_MS * 2 ** (count + again - 1))
      const outageMs = history.outages
        .filter(({ upMs, downMs }) => upMs > atMs && downMs < recoveredMs)
        .reduce((sum, { upMs, downMs }) => sum + (upMs - downMs) + RESTART_LIMIT_MS, 0)
      return [
        {
          job,
          life,
          crashes: count,
          tookMs: recoveredMs - atMs,
          limitMs: life.leaseMs + RECOVERY_SLACK_MS + backoffMs + againMs + outageMs,
        },
      ]
    }),
  )
}

export function restartsOf(history: History): readonly { readonly mode: string; readonly tookMs: number }[] {
  const recordedMs = history.audit
    .filter(({ what }) => what === 'outcome')
    .map(({ atMs }) => atMs - history.clockOffsetMs)
  return history.outages.map(({ mode, upMs }) => {
    const first = recordedMs.find((ms) => ms > upMs)
    return { mode, tookMs: (first ?? Number.POSITIVE_INFINITY) - upMs }
  })
}

/** I10: work goes on elsewhere within the lease and 5 s, and within 10 s of a restart; no host process dies by itself. */
export function progress(
  history: History,
  recoveries: readonly Recovery[],
  restarts: readonly { readonly mode: string; readonly tookMs: number }[],
): Verdict {
  const violations = [...history.problems]
  for (const { job, life, tookMs, limitMs } of recoveries) {
    if (tookMs > limitMs)
      violations.push(
        `job ${job} of killed ${life.slot} went on after ${Math.round(tookMs)} ms, allowed ${Math.round(limitMs)}`,
      )
  }
  for (const { mode, tookMs } of restarts) {
    if (tookMs > RESTART_LIMIT_MS)
      violations.push(`work resumed ${Math.round(tookMs)} ms after the database was back (${mode})`)
  }
  for (const life of history.unordered)
    violations.push(`${life.slot} (pid ${life.pid}) ended by itself: ${life.exit}`)
  return {
    name: 'I10',
    promise: 'work goes on within its bounds; no host process dies',
    checked: recoveries.length + restarts.length,
    violations,
  }
}

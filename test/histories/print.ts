import { printTable } from '../chaos/print.ts'
import { leastFaults } from './fault-counts.ts'
import type { HistoriesReport } from './report.ts'
import type { ControlResult } from './run-controls.ts'

const SHOWN = 3

/** The report of a run, as tables. */
export function printReport(report: HistoriesReport): void {
  const { seed, seconds, workloads, counts, problems, errors } = report
  console.log(`\nhistories: seed ${seed}, ${Math.round(seconds)} s\n`)
  printTable(
    ['workload', 'calls', 'answered', 'failed', 'unknown', 'checked', 'at least', 'verdict'],
    workloads.map(({ workload, calls, ok, failed, unknown, verdict }) =>
      [workload, calls, ok, failed, unknown, verdict.work, verdict.least, verdict.answer].map(String),
    ),
  )
  const least = leastFaults(seconds / 60)
  printTable(
    ['fault', 'hit', 'at least'],
    [
      ['kills (SIGKILL)', counts.kills],
      ['of these with a call under way', counts.killsInCall, least.killsInCall],
      ['pauses (SIGSTOP), up to 0.7 s', counts.pauses, least.pauses],
      ['sessions ended by pg_terminate_backend', counts.terminated, least.terminated],
      ['lost replies', counts.lostReplies, least.lostReplies],
      ['links cut', counts.cuts],
    ].map((row) => row.map(String)),
  )
  for (const [error, times] of [...errors].slice(0, 2 * SHOWN)) console.log(`${times} × ${error}`)
  for (const problem of problems) console.log(`proved nothing: ${problem}`)
  for (const { workload, verdict } of workloads) {
    for (const text of verdict.explanation.slice(0, SHOWN)) console.log(`${workload}: ${text}`)
    const more = verdict.explanation.length - SHOWN
    if (more > 0) console.log(`${workload}: … and ${more} more`)
  }
  console.log(report.ok ? 'passed' : `FAILED; logs are in ${report.artifacts ?? 'memory'}`)
}

/** Prints each control as it ends. */
export function printControl({ name, control, caught, finding, tookMs }: ControlResult): void {
  const seconds = (tookMs / 1000).toFixed(1).padStart(6)
  console.log(`${caught ? 'caught' : 'MISSED'} ${seconds} s  ${name} (${control.takesOut}): ${finding}`)
}

import { leastOf } from './minima.ts'
import type { ChaosReport } from './report.ts'
import type { ControlResult } from './run-controls.ts'

const SHOWN = 8

/** The report of a run, as tables. */
export function printReport(report: ChaosReport): void {
  const { verdicts, enqueues } = report
  console.log(
    `\nchaos: seed ${report.seed}, ${report.minutes} minutes, ${report.jobs} jobs, ${report.attempts} handler calls\n`,
  )
  printTable(['fault', 'hit', 'at least'], faultRows(report))
  const lost = [...report.lostReplies].sort((a, b) => b[1] - a[1]).map(([name, count]) => `${name} ${count}`)
  console.log(`lost replies: ${lost.join(', ')}`)
  console.log(
    `enqueues: ${Object.entries(enqueues)
      .map(([name, count]) => `${name} ${count}`)
      .join(', ')}\n`,
  )
  printTable(
    ['', 'invariant', 'checked', 'violations'],
    verdicts.map(({ name, promise, checked, violations }) => [
      name,
      promise,
      String(checked),
      String(violations.length),
    ]),
  )
  console.log(`killed worker's job runs elsewhere or has ended after: ${percentiles(report.killRecoveryMs)}`)
  console.log(
    `the same, of jobs that had lost a worker just before: ${percentiles(report.repeatedRecoveryMs)}`,
  )
  console.log(`work resumed after the database was back: ${percentiles(report.restartRecoveryMs)}`)
  console.log(
    `drained in ${report.drainedInMs === undefined ? 'no time that was given' : `${Math.round(report.drainedInMs)} ms`}\n`,
  )
  for (const shortage of report.shortages) console.log(`proved nothing: ${shortage}`)
  for (const { name, violations } of verdicts) {
    for (const text of violations.slice(0, SHOWN)) console.log(`${name}: ${text}`)
    if (violations.length > SHOWN) console.log(`${name}: … and ${violations.length - SHOWN} more`)
  }
  console.log(report.ok ? 'passed' : `FAILED; histories and logs are in ${report.artifacts}`)
}

function faultRows({ counts, lateCalls, minutes }: ChaosReport): readonly (readonly string[])[] {
  const least = leastOf(minutes)
  const rows = [
    ['kills (SIGKILL) that hit a running handler', counts.killsInHandler, least.killsInHandler],
    [
      'of these between a provider’s acceptance of a call and its record',
      counts.killsAfterCall,
      least.killsAfterCall,
    ],
    ['kills in all', counts.kills],
    ['poison pills that ended their process', counts.pills],
    ['zombies: stopped past the lease, woken after the job went elsewhere', counts.zombies, least.zombies],
    ['writes of zombies refused', counts.zombieWritesRefused, least.zombieWritesRefused],
    ['lost replies', counts.lostReplies, least.lostReplies],
    ['database restarts (fast, immediate, kill -9 in turn)', counts.restarts, least.restarts],
    ['sessions ended by pg_terminate_backend', counts.terminated],
    ['  of these listeners', counts.terminatedListeners],
    ['  of these heartbeats', counts.terminatedHeartbeats],
    ['connections cut at once', counts.cuts],
    ['links frozen for a while', counts.freezes],
    ['workers stopped by SIGTERM', counts.stops],
    ['doubts about effects resolved', counts.doubtsResolved, least.doubtsResolved],
    ['jobs completed by their own commit', counts.commits, least.commits],
    ['calls of workers that woke after others had gone on', lateCalls],
  ]
  return rows.map((row) => row.map(String))
}

/** Prints each control as it ends. */
export function printControls(): (result: ControlResult) => void {
  return ({ name, control, caught, finding, tookMs }) => {
    const seconds = (tookMs / 1000).toFixed(1).padStart(6)
    console.log(`${caught ? 'caught' : 'MISSED'} ${seconds} s  ${name} (${control.statement}): ${finding}`)
  }
}

function percentiles(values: readonly number[]): string {
  if (values.length === 0) return 'nothing to measure'
  const sorted = [...values].sort((a, b) => a - b)
  const at = (share: number) =>
    Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0)
  return `p50 ${at(0.5)} ms, p95 ${at(0.95)} ms, max ${at(1)} ms (${values.length} measured)`
}

/** Columns that line up. */
export function printTable(head: readonly string[], rows: readonly (readonly string[])[]): void {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)),
  )
  const line = (cells: readonly string[]) =>
    widths
      .map((width, column) => (cells[column] ?? '').padEnd(width))
      .join('  ')
      .trimEnd()
  console.log(line(head))
  console.log(widths.map((width) => '-'.repeat(width)).join('  '))
  for (const row of rows) console.log(line(row))
  console.log('')
}

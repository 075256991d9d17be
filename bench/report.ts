import type { Bar } from './bars.ts'
import type { Results, Row } from './results.ts'
import type { Workload } from './workloads/workload.ts'

/** Tables of one workload: a line for each contender at each point, its ratios to the baselines beside it. */
export function workloadTable(workload: Workload, results: Results, baselines: readonly string[]): string {
  const rows = results.rows(workload.id)
  const figures = [...new Set(rows.flatMap((row) => Object.keys(row.figures)))]
  const header = [
    'contender',
    ...figures.slice(0, 1),
    '±',
    ...baselines.map((name) => `× ${name}`),
    ...figures.slice(1),
  ]
  const points = [...new Set(rows.map((row) => row.point))]
  const tables = points.map((point) => {
    const lines = rows
      .filter((row) => row.point === point)
      .map((row) => lineOf(row, figures, workload, results, baselines))
    return `  ${point}\n${aligned([header, ...lines], '    ')}`
  })
  const notes = `  Not measured: ${workload.exclusions}`
  return [`\n${workload.id}  ${workload.title}`, ...tables, notes].join('\n')
}

function lineOf(
  row: Row,
  figures: readonly string[],
  { ratioOf }: Workload,
  results: Results,
  baselines: readonly string[],
): readonly string[] {
  const [first = '', ...others] = figures
  const lead = row.figures[first]
  return [
    row.contender,
    shown(lead?.median ?? Number.NaN),
    lead && lead.rounds > 1 ? `${lead.spreadPercent.toFixed(0)}%` : '–',
    ...baselines.map((baseline) => shown(results.ratio(row, baseline, ratioOf))),
    ...others.map((name) => shown(row.figures[name]?.median ?? Number.NaN)),
  ]
}

export function barsTable(bars: readonly Bar[]): string {
  const lines = bars.map(({ verdict, workload, text, measured }) => [verdict, workload, text, measured])
  const count = (verdict: Bar['verdict']) => bars.filter((bar) => bar.verdict === verdict).length
  const totals = `${count('PASS')} passed, ${count('FAIL')} failed, ${count('not measured')} not measured`
  return `\nBars (now)\n${aligned(lines, '  ')}\n  ${totals}`
}

function aligned(lines: readonly (readonly string[])[], indent: string): string {
  const widths: number[] = []
  for (const line of lines) {
    for (const [column, text] of line.entries()) widths[column] = Math.max(widths[column] ?? 0, text.length)
  }
  return lines
    .map(
      (line) =>
        indent +
        line
          .map((text, column) => pad(text, widths[column] ?? 0))
          .join('  ')
          .trimEnd(),
    )
    .join('\n')
}

function pad(text: string, width: number): string {
  return /^(–|[-\d.,]+%?)$/.test(text) ? text.padStart(width) : text.padEnd(width)
}

/** Three significant digits; whole numbers from 100 on, with thousands apart. */
function shown(value: number): string {
  if (!Number.isFinite(value)) return '–'
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en-US')
  if (Math.abs(value) >= 10) return value.toFixed(1)
  return value.toFixed(Math.abs(value) >= 1 ? 2 : 3)
}

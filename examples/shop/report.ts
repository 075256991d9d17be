import { format } from './display.ts'
import { brokenPromises, missedFaults, unfinished, type Verdict } from './verdict.ts'

export interface ReportOptions {
  readonly mode: 'server' | 'embedded'
  /** Name and version of the database. */
  readonly database: string
  readonly seed: number
  readonly durationMs: number
}

export interface Report {
  readonly text: string
  /** 0 if every promise was kept and every fault hit, else 1. */
  readonly exitCode: 0 | 1
}

type Row = readonly [label: string, value: string, remark: string]

export function writeReport(verdict: Verdict, options: ReportOptions): Report {
  const embedded = options.mode === 'embedded'
  const broken = brokenPromises(verdict)
  const missed = embedded ? unfinished(verdict) : missedFaults(verdict)
  const rows = [...outcomeRows(verdict), ...(embedded ? embeddedFaultRows : faultRows(verdict))]
  const seconds = (options.durationMs / 1_000).toFixed(1)

  const text = [
    '',
    formatTable([...rows, ['time', `${seconds} s`, `${options.database}, seed ${options.seed}`]]),
    '',
    ...(embedded ? [] : [whyTwice, '']),
    ...[...broken, ...missed].map((sentence) => `  ✗ ${sentence}`),
    ...conclude(broken, missed, embedded),
    '',
  ].join('\n')
  return { text, exitCode: broken.length + missed.length === 0 ? 0 : 1 }
}

function outcomeRows(verdict: Verdict): Row[] {
  const { lost, ghosts, garbled } = verdict
  return [
    ['orders confirmed', format(verdict.confirmed), 'each in one transaction with its job'],
    ['orders rolled back', format(verdict.rolledBack), 'on purpose, after the enqueue'],
    ['mails accepted', format(verdict.mails), 'by a real SMTP server'],
    [
      'jobs lost',
      format(lost.length),
      lost.length === 0 ? 'kept: every confirmed order was handled' : 'BROKEN',
    ],
    [
      'ghosts',
      format(ghosts.length),
      ghosts.length === 0 ? 'kept: nothing rolled back left a trace' : 'BROKEN',
    ],
    [
      'mails garbled',
      format(garbled.length),
      garbled.length === 0 ? 'kept: as the customer typed it' : 'BROKEN',
    ],
  ]
}

function faultRows(verdict: Verdict): Row[] {
  const { kills, hits, refused, pauses, deaths } = verdict
  return [
    ['workers killed (-9)', format(kills), `${hits.length} of them in the middle of a job`],
    ['jobs rescued', format(verdict.rescues), 'by another worker, after the lease'],
    ['workers stopped and woken', format(pauses), 'past the lease, their job done elsewhere meanwhile'],
    [
      'stale writes refused',
      format(refused),
      refused === 0 ? 'none seen' : 'kept: the fencing token was old',
    ],
    ['mails sent twice', format(verdict.sentTwice), 'see below'],
    ...(deaths.length > 0 ? [['workers that died', format(deaths.length), 'BROKEN'] as const] : []),
  ]
}

/** One process has nobody who could kill it and go on to tell. */
const embeddedFaultRows: Row[] = [
  ['workers killed (-9)', '–', 'all runs in one process: there is nobody to kill'],
  ['stale writes refused', '–', 'nor to be overtaken by; run without --pglite for that'],
]

const whyTwice = `  Why mails can be sent twice: delivery is at least once, and a worker that dies between the mail
  server's acceptance and its own "completed" leaves a job that another worker must run again.
  The effect ledger, which comes next, records the intent before the call, so that such a mail is
  repeated under the same key or put before a person, but never silently sent again.`

function conclude(broken: readonly string[], missed: readonly string[], embedded: boolean): string[] {
  if (broken.length > 0) return ['  A promise was broken.']
  if (missed.length > 0) return ['  No promise was broken, but the run proves nothing.']
  return [embedded ? '  All promises kept.' : '  All promises kept, and the faults hit.']
}

function formatTable(rows: readonly Row[]): string {
  const [first, second, third] = [0, 1, 2].map((column) =>
    Math.max(...rows.map((row) => (row[column] ?? '').length)),
  ) as [number, number, number]
  const rule = (left: string, middle: string, right: string) =>
    `  ${left}${[first, second, third].map((width) => '─'.repeat(width + 2)).join(middle)}${right}`
  const lines = rows.map(
    ([label, value, remark]) =>
      `  │ ${label.padEnd(first)} │ ${value.padStart(second)} │ ${remark.padEnd(third)} │`,
  )
  return [rule('┌', '┬', '┐'), ...lines, rule('└', '┴', '┘')].join('\n')
}
